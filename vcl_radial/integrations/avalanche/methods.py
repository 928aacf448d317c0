"""Every method of the suite as an Avalanche strategy, which takes the same settings.

`Strategy(method, ...)` is the same for a method that is made already.
"""

from vcl_radial.integrations.avalanche.base import ContinualStrategy
from vcl_radial.methods import (
    badam,
    bayes_discriminant,
    bayes_linear,
    coreset_vcl,
    curvature_vcl,
    deep_ensemble,
    ewc,
    ewc_dr,
    ewc_separate,
    frozen_body,
    gvcl,
    ivon,
    joint,
    l2,
    laplace_diagonal,
    laplace_kronecker,
    laplace_linearised,
    laplace_low_rank,
    learning_body,
    lwf,
    mas,
    mc_dropout,
    mesu,
    ml_init_vcl,
    naive,
    proximal_vcl,
    ranpac,
    rdp_vcl,
    replay,
    rwalk,
    sfsvi,
    sgld,
    si,
    single_task,
    slda,
    swag,
    vadam,
    vcl,
    vogn,
)


class BAdam(ContinualStrategy):
    """`BAdam` as a strategy."""

    method_class = badam.BAdam


class BayesDiscriminant(ContinualStrategy):
    """`BayesDiscriminant` as a strategy."""

    method_class = bayes_discriminant.BayesDiscriminant


class BayesLinear(ContinualStrategy):
    """`BayesLinear` as a strategy."""

    method_class = bayes_linear.BayesLinear


class CoresetVCL(ContinualStrategy):
    """`CoresetVCL` as a strategy."""

    method_class = coreset_vcl.CoresetVCL


class CurvatureVCL(ContinualStrategy):
    """`CurvatureVCL` as a strategy."""

    method_class = curvature_vcl.CurvatureVCL


class DeepEnsemble(ContinualStrategy):
    """`DeepEnsemble` as a strategy."""

    method_class = deep_ensemble.DeepEnsemble


class EWC(ContinualStrategy):
    """`EWC` as a strategy."""

    method_class = ewc.EWC


class EWCDR(ContinualStrategy):
    """`EWCDR` as a strategy."""

    method_class = ewc_dr.EWCDR


class SeparateEWC(ContinualStrategy):
    """`SeparateEWC` as a strategy."""

    method_class = ewc_separate.SeparateEWC


class FrozenBody(ContinualStrategy):
    """`FrozenBody` as a strategy."""

    method_class = frozen_body.FrozenBody


class GVCL(ContinualStrategy):
    """`GVCL` as a strategy."""

    method_class = gvcl.GVCL


class IVON(ContinualStrategy):
    """`IVON` as a strategy."""

    method_class = ivon.IVON


class Joint(ContinualStrategy):
    """`Joint` as a strategy."""

    method_class = joint.Joint


class L2(ContinualStrategy):
    """`L2` as a strategy."""

    method_class = l2.L2


class LaplaceDiagonal(ContinualStrategy):
    """`LaplaceDiagonal` as a strategy."""

    method_class = laplace_diagonal.LaplaceDiagonal


class LaplaceKronecker(ContinualStrategy):
    """`LaplaceKronecker` as a strategy."""

    method_class = laplace_kronecker.LaplaceKronecker


class LaplaceLinearised(ContinualStrategy):
    """`LaplaceLinearised` as a strategy."""

    method_class = laplace_linearised.LaplaceLinearised


class LaplaceLowRank(ContinualStrategy):
    """`LaplaceLowRank` as a strategy."""

    method_class = laplace_low_rank.LaplaceLowRank


class LearningBody(ContinualStrategy):
    """`LearningBody` as a strategy."""

    method_class = learning_body.LearningBody


class LwF(ContinualStrategy):
    """`LwF` as a strategy."""

    method_class = lwf.LwF


class MAS(ContinualStrategy):
    """`MAS` as a strategy."""

    method_class = mas.MAS


class MCDropout(ContinualStrategy):
    """`MCDropout` as a strategy."""

    method_class = mc_dropout.MCDropout


class MESU(ContinualStrategy):
    """`MESU` as a strategy."""

    method_class = mesu.MESU


class MLInitVCL(ContinualStrategy):
    """`MLInitVCL` as a strategy."""

    method_class = ml_init_vcl.MLInitVCL


class Naive(ContinualStrategy):
    """`Naive` as a strategy."""

    method_class = naive.Naive


class ProximalVCL(ContinualStrategy):
    """`ProximalVCL` as a strategy."""

    method_class = proximal_vcl.ProximalVCL


class RanPAC(ContinualStrategy):
    """`RanPAC` as a strategy."""

    method_class = ranpac.RanPAC


class RDPVCL(ContinualStrategy):
    """`RDPVCL` as a strategy."""

    method_class = rdp_vcl.RDPVCL


class Replay(ContinualStrategy):
    """`Replay` as a strategy."""

    method_class = replay.Replay


class RWalk(ContinualStrategy):
    """`RWalk` as a strategy."""

    method_class = rwalk.RWalk


class SFSVI(ContinualStrategy):
    """`SFSVI` as a strategy."""

    method_class = sfsvi.SFSVI


class SGLD(ContinualStrategy):
    """`SGLD` as a strategy."""

    method_class = sgld.SGLD


class SI(ContinualStrategy):
    """`SI` as a strategy."""

    method_class = si.SI


class SingleTask(ContinualStrategy):
    """`SingleTask` as a strategy."""

    method_class = single_task.SingleTask


class SLDA(ContinualStrategy):
    """`SLDA` as a strategy."""

    method_class = slda.SLDA


class SWAG(ContinualStrategy):
    """`SWAG` as a strategy."""

    method_class = swag.SWAG


class VADAM(ContinualStrategy):
    """`VADAM` as a strategy."""

    method_class = vadam.VADAM


class VCL(ContinualStrategy):
    """`VCL` as a strategy."""

    method_class = vcl.VCL


class VOGN(ContinualStrategy):
    """`VOGN` as a strategy."""

    method_class = vogn.VOGN
