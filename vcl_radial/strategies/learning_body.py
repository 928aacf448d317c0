"""`vcl_radial.methods.learning_body` as an Avalanche strategy."""

from vcl_radial.methods import learning_body
from vcl_radial.strategies.base import ContinualStrategy


class LearningBody(ContinualStrategy):
    """`LearningBody` as a strategy, which takes the same settings."""

    method_class = learning_body.LearningBody
