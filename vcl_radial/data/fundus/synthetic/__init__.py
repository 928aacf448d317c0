"""Drawn fundus pictures, so that everything runs anywhere. They are no photographs of anybody.

A patient has two eyes of correlated grade and is seen by one of two cameras; lesions follow the
grade, and a known share of pictures has an artefact of the camera, which the table names. So it can
be scored whether uncertainty finds them.
"""

from vcl_radial.data.fundus.synthetic.photographs import (
    SYNTHETIC_NOTICE,
    SyntheticReader,
    synthetic_photographs,
)
from vcl_radial.data.fundus.synthetic.population import ARTEFACTS, CAMERAS, SyntheticSettings

__all__ = [
    "ARTEFACTS",
    "CAMERAS",
    "SYNTHETIC_NOTICE",
    "SyntheticReader",
    "SyntheticSettings",
    "synthetic_photographs",
]
