"""A method that is in order, and methods that differ from it by one fault each."""

import math

import torch
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from vcl_radial.integrations.avalanche import ContinualStrategy
from vcl_radial.methods.base import Method
from vcl_radial.methods.laplace import LaplaceMethod


class Good(ContinualStrategy):
    """loss = mean NLL + strength / 2 ||w - w_old||^2 / N"""

    def __init__(self, *, strength=10.0, **settings):
        super().__init__(**settings)
        self.strength, self.old = strength, {}

    def penalty(self):
        weights = self.network.named_parameters()
        moved = ((w - self.old[name]).square().sum() for name, w in weights if name in self.old)
        return self.strength / 2 * sum(moved)

    def consolidate(self, experience):
        trained = {n: w for n, w in self.network.named_parameters() if w.grad is not None}
        self.old |= {name: w.detach().clone() for name, w in trained.items()}

    def state_dict(self):
        return super().state_dict() | {"old": self.old}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.old = state["old"]


# runs


class Raises(Good):
    def penalty(self):
        return super().penalty() / len(self.old)


class Flattens(Good):
    """It breaks in task 2, far from its cause."""

    def consolidate(self, experience):
        super().consolidate(experience)
        weight = self.network.body[0].weight
        weight.data = weight.data.flatten()


class DoesNotSum(Good):
    def penalty(self):
        return super().penalty() * torch.ones(2)


class BreaksAvalanche(Good):
    """It breaks where nothing of its own is at work."""

    def consolidate(self, experience):
        super().consolidate(experience)
        self.train_mb_size = "many"


class LacksAMethod(Good):
    def consolidate(self, experience):
        self.importance(experience)


class OnlyWithManyHeads(Good):
    def consolidate(self, experience):
        super().consolidate(experience)
        self.trained = sorted(self.network.head.heads)


class ConsolidatesNoExperience(Good):
    def consolidate(self):
        self.old = dict(self.network.named_parameters())


class RaisesWhenMade(Good):
    def __init__(self, **settings):
        super().__init__(**settings)
        self.capacity = {}["capacity"]


class PenaltyIsNaN(Good):
    def penalty(self):
        return super().penalty() * (math.nan if self.old else 1)


class IsNaNAtOnce(Method):
    def penalty(self):
        return math.nan * sum(w.sum() for w in self.network.parameters())


class ConsolidatesNaN(Good):
    @torch.no_grad()
    def consolidate(self, experience):
        super().consolidate(experience)
        self.network.body[0].bias[0] = math.nan


class PredictsNaN(Good):
    def forward(self):
        return super().forward() * (1 if self.is_training else math.nan)


class Reshapes(Good):
    def consolidate(self, experience):
        bias = self.network.body[0].bias
        bias.data = bias.data.view(1, -1)
        super().consolidate(experience)


class DropsAParameter(Good):
    def consolidate(self, experience):
        super().consolidate(experience)
        self.network.body[0].bias = None


# data


class AltersTheStream(Good):
    def consolidate(self, experience):
        super().consolidate(experience)
        self.tensor_stream.x[-1] = 0


class AltersInputsInEvaluation(Good):
    def forward(self):
        if not self.is_training:
            self.mb_x.mul_(0.5)
        return super().forward()


# learns


class LearnsTheOppositeLabels(Good):
    def criterion(self):
        if not self.is_training:
            return super().criterion()
        labels, self.mbatch[1] = self.mb_y, self.mb_output.shape[1] - 1 - self.mb_y
        loss = super().criterion()
        self.mbatch[1] = labels
        return loss


# heads stay apart


class DecaysEveryHead(Good):
    @torch.no_grad()
    def _after_update(self, **kwargs):
        super()._after_update(**kwargs)
        for weight in self.network.head.parameters():
            weight.mul_(0.999)


class DecaysHeadsToCome(Good):
    trains_old_heads = True

    @torch.no_grad()
    def _after_update(self, **kwargs):
        super()._after_update(**kwargs)
        for name, weight in self.network.head.named_parameters():
            if "heads.2" in name:
                weight.mul_(0.999)


# frozen weights


class ShrinksEveryWeight(Good):
    @torch.no_grad()
    def _after_update(self, **kwargs):
        super()._after_update(**kwargs)
        for weight in self.network.body.parameters():
            weight.mul_(0.9999)


# seeds


class DrawsUnseeded(Good):
    @torch.no_grad()
    def _after_update(self, **kwargs):
        super()._after_update(**kwargs)
        generator = torch.Generator()
        generator.seed()
        self.network.body[0].bias.add_(1e-3 * torch.rand(1, generator=generator))


class SetsASeedOfItsOwn(Good):
    def _before_training_exp(self, **kwargs):
        torch.manual_seed(0)
        super()._before_training_exp(**kwargs)


# evaluation


class DrawsInEvaluation(Good):
    def forward(self):
        if not self.is_training:
            torch.rand(1)
        return super().forward()


class LeavesEvaluationMode(Good):
    def eval(self, *args, **kwargs):
        super().eval(*args, **kwargs)
        self.model.eval()


class WritesInEvaluation(Good):
    @torch.no_grad()
    def _after_eval_exp(self, **kwargs):
        super()._after_eval_exp(**kwargs)
        self.network.body[0].bias.add_(1e-3)


class ForgetsInEvaluation(Good):
    """What evaluation spoils is neither in the model nor in a generator."""

    def _after_eval_exp(self, **kwargs):
        super()._after_eval_exp(**kwargs)
        self.old = {name: w + 0.1 for name, w in self.old.items()}


# batch norms


class LooksInTrainingMode(Good):
    def consolidate(self, experience):
        super().consolidate(experience)
        for call, _ in self.method.points():
            self.network.train()
            self.network(*call)


class AveragesWhatItEvaluates(Good):
    def forward(self):
        if not self.is_training:
            self.network.train()
            self.network(self.mb_x, self.mb_task_id)
            self.network.eval()
        return super().forward()


# checkpoint


class ForgetsItsState(Good):
    def state_dict(self):
        return ContinualStrategy.state_dict(self)

    def load_state_dict(self, state):
        ContinualStrategy.load_state_dict(self, state)


class Memory:
    pass


class KeepsAnObject(Good):
    def state_dict(self):
        return super().state_dict() | {"memory": [Memory()]}


class CannotGoOn(Good):
    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.old = state["older"]


class PredictsWithoutItsState(Good):
    temperature = 1.0

    def consolidate(self, experience):
        super().consolidate(experience)
        self.temperature *= 1.5

    def forward(self):
        return super().forward() / (1 if self.is_training else self.temperature)


# consolidates


class ForgetsToConsolidate(Good):
    def consolidate(self, experience):
        pass


class RemembersTheWrongWeights(Good):
    """Those that training began with, of the body."""

    def _before_training_exp(self, **kwargs):
        super()._before_training_exp(**kwargs)
        self.first = {n: w.detach().clone() for n, w in self.network.named_parameters()}

    def consolidate(self, experience):
        self.old = {name: w for name, w in self.first.items() if "body" in name}


class SaysItRemembersNothing(Good):
    memoryless = True


class AnchorsEveryHead(Good):
    def consolidate(self, experience):
        self.old = {n: w.detach().clone() for n, w in self.network.named_parameters()}


# penalty


class DividesByN(Good):
    def penalty(self):
        return super().penalty() / len(self.adapted_dataset)


class MultipliesByN(Good):
    def penalty(self):
        return super().penalty() * len(self.adapted_dataset)


class DividesByTheBatch(Good):
    def penalty(self):
        return super().penalty() / len(self.mb_y)


class HasNoGradient(Good):
    @torch.no_grad()
    def penalty(self):
        return super().penalty()


class HidesItsGradient(HasNoGradient):
    """What it gives has a gradient, which is 0."""

    def penalty(self):
        return super().penalty() + 0 * sum(w.sum() for w in self.network.parameters())


class IsConstant(Good):
    def penalty(self):
        return torch.tensor(5.0)


class GivesANumber(Good):
    def penalty(self):
        return float(torch.as_tensor(super().penalty()).detach())


class ReturnsNothing(Good):
    def penalty(self):
        super().penalty()


class HasAnotherGradientWithoutItsValue(Good):
    def penalty(self):
        return super().penalty() * (1 if self.loss_value else 2)


class LeavesTheScaleOut(Good):
    def criterion(self):
        if not self.is_training:
            return super().criterion()
        return cross_entropy(self.mb_output, self.mb_y) + self.kl_weight * self.penalty()


class SumsOverTheBatch(Good):
    def criterion(self):
        loss = super().criterion()
        if not self.is_training:
            return loss
        return loss + cross_entropy(self.mb_output, self.mb_y, reduction="sum")


# accumulates


class Laplace(LaplaceMethod):
    """In order: the diagonal empirical Fisher, the sum of the points' squared gradients."""

    decay = 1.0
    group = 1
    """Points whose gradients are averaged before they are squared; None for all of a batch."""

    def end_task(self, task):
        weights = self.trained_parameters()
        squares = {name: [] for name in weights}
        for (x, *head), labels in self.points():
            y = self.labels_for(x, head, labels)

            def nll(values, x, y, head=head):
                return cross_entropy(functional_call(self.network, values, (x[None], *head)), y)

            held = {name: weight.detach() for name, weight in weights.items()}
            for name, gradients in vmap(grad(nll), (None, 0, 0))(held, x, y[:, None]).items():
                groups = gradients.split(self.group or len(y))
                squares[name] += [group.mean(0).square() for group in groups]
        fisher = {name: self.total(terms) for name, terms in squares.items()}
        for name in fisher.keys() - self.past.precision.keys():
            fisher[name] += self.prior_precision
        self.past.carry(weights, fisher, self.decay)

    def labels_for(self, x, head, labels):
        return labels

    def total(self, terms):
        return sum(terms)


class LaplaceWithDecay(Laplace):
    decay = 0.9


class LaplaceWithDrawnLabels(Laplace):
    """The Fisher proper, its expectation over labels estimated by one draw for each point."""

    @torch.no_grad()
    def labels_for(self, x, head, labels):
        return torch.multinomial(self.network(x, *head).softmax(-1), 1).squeeze(1)


class FisherOfMiniBatches(Laplace):
    group = None


class MeanFisherOfMiniBatches(FisherOfMiniBatches):
    """As Avalanche's plugin has it."""

    def total(self, terms):
        return sum(terms) / len(terms)


class FisherOfGroups(Laplace):
    group = 8


class MeanFisher(Laplace):
    def total(self, terms):
        return sum(terms) / len(terms)


class MeanFisherWithDrawnLabels(LaplaceWithDrawnLabels, MeanFisher):
    pass
