"""Readable names of methods, benchmarks and data sets for pictures; unknown names stay."""

from __future__ import annotations

from collections.abc import Mapping

_METHODS = {
    "badam": "BAdam",
    "bayes-discriminant": "Bayesian discriminant",
    "bayes-linear": "Bayesian linear",
    "bayes-linear-first-body": "Bayesian linear, first body",
    "bayes-linear-patches": "Bayesian linear, patches",
    "bayes-linear-tangent": "Bayesian linear, tangent",
    "curvature-vcl": "curvature VCL",
    "deep-ensemble": "deep ensemble",
    "ewc": "EWC",
    "ewc-dr": "EWC-DR",
    "ewc-separate": "EWC, separate penalties",
    "frozen-body": "frozen body",
    "gaussian-vcl": "Gaussian VCL",
    "gaussian-vcl-proximal": "Gaussian VCL, proximal",
    "gaussian-vcl-restart": "Gaussian VCL, restart",
    "gaussian-vcl-truncated": "Gaussian VCL, truncated",
    "gaussian-vcl-tweaked": "Gaussian VCL, tweaked",
    "gvcl": "GVCL",
    "ivon": "IVON",
    "joint": "joint training",
    "l2": "L2",
    "laplace-diagonal": "Laplace, diagonal",
    "laplace-kronecker": "Laplace, Kronecker",
    "laplace-last-layer": "Laplace, last layer",
    "laplace-linearised": "Laplace, linearised",
    "laplace-low-rank": "Laplace, low rank",
    "learning-body": "learning body",
    "low-rank-vcl": "low-rank VCL",
    "lwf": "LwF",
    "mas": "MAS",
    "mc-dropout": "MC dropout",
    "mesu": "MESU",
    "naive-sgd": "naive, SGD",
    "radial-ensemble": "radial ensemble",
    "radial-low-rank-vcl": "radial low-rank VCL",
    "radial-vcl": "radial VCL",
    "radial-vcl-coreset-kcentre": "radial VCL, k-centre coreset",
    "radial-vcl-coreset-random": "radial VCL, random coreset",
    "radial-vcl-eq44": "radial VCL, Eq. 44",
    "radial-vcl-matched-noise": "radial VCL, matched noise",
    "radial-vcl-proximal": "radial VCL, proximal",
    "radial-vcl-restart": "radial VCL, restart",
    "ranpac": "RanPAC",
    "rdp-vcl": "RDP VCL",
    "rdp-vcl-noise-prior": "RDP VCL, noise prior",
    "replay-32mb": "replay, 32 MB",
    "rwalk": "RWalk",
    "sfsvi": "S-FSVI",
    "sgld": "SGLD",
    "si": "SI",
    "single-task": "a network per task",
    "slda": "SLDA",
    "swag": "SWAG",
    "vadam": "VADAM",
    "vcl-coreset-kcentre": "Gaussian VCL, k-centre coreset",
    "vcl-coreset-random": "Gaussian VCL, random coreset",
    "vcl-ml-init": "Gaussian VCL, ML start",
    "vcl-point-heads": "Gaussian VCL, point heads",
    "vogn": "VOGN",
}

_HEADS = {"multi": "a head per task", "single": "one head"}
_STREAMS = {
    "image-folder": "Image folder",
    "split-digits": "Split digits",
    "split-glyphs": "Split glyphs",
    "split-fashion": "Split FashionMNIST",
    "split-mnist": "Split MNIST",
    "split-mnist-hsu": "Split MNIST of Hsu et al.",
    "split-notmnist": "Split notMNIST",
}
_BENCHMARKS = {
    f"{stream}-{kind}-head": f"{label}, {heads}"
    for stream, label in _STREAMS.items()
    for kind, heads in _HEADS.items()
} | {
    "bandit-adult": "Adult",
    "bandit-census": "Census",
    "bandit-covertype": "Covertype",
    "bandit-financial": "Financial",
    "bandit-jester": "Jester",
    "bandit-mushroom": "Mushroom",
    "bandit-statlog": "Statlog",
    "diabetes": "Diabetes",
    "diabetes-sequence": "Diabetes in sequence",
    "fashion-mnist": "FashionMNIST",
    "mnist": "MNIST",
    "permuted-mnist": "Permuted MNIST",
    "retinopathy-aptos": "APTOS",
    "retinopathy-eyepacs": "EyePACS subset",
    "retinopathy-features-aptos": "APTOS, features of EfficientNet-lite0",
    "retinopathy-features-eyepacs": "EyePACS subset, features of EfficientNet-lite0",
    "retinopathy-features-hospitals": "Hospitals in sequence, features of EfficientNet-lite0",
    "retinopathy-features-odir": "ODIR, features of EfficientNet-lite0",
    "retinopathy-hospitals": "Hospitals in sequence",
    "retinopathy-idrid": "IDRiD",
    "retinopathy-kaggle": "Kaggle's Diabetic Retinopathy Detection",
    "retinopathy-kaggle-256": "Kaggle's Diabetic Retinopathy Detection, 256 pixels",
    "retinopathy-odir": "ODIR",
    "retinopathy-shift": "Shift between hospitals",
    "split-fashion-rudner-multi-head": "Split FashionMNIST of Rudner et al., a head per task",
    "split-mnist-nguyen-multi-head": "Split MNIST of Nguyen et al., a head per task",
    "retinopathy-synthetic": "Drawn photographs",
    "retinopathy-synthetic-cameras": "Drawn photographs, cameras in sequence",
    "uci": "UCI sets",
    "uci-sequence": "UCI sets in sequence",
}

_DATA_SETS = {
    "aptos": "APTOS",
    "boston": "Boston",
    "concrete": "Concrete",
    "diabetes": "Diabetes",
    "energy": "Energy",
    "eyepacs": "EyePACS",
    "eyepacs-subset": "EyePACS",
    "fashion-mnist": "FashionMNIST",
    "idrid": "IDRiD",
    "naval": "Naval",
    "odir": "ODIR",
    "odir-other": "ODIR, other diseases",
    "power": "Power",
    "protein": "Protein",
    "synthetic": "drawn photographs",
    "test": "its test part",
    "wine": "Wine",
    "yacht": "Yacht",
}


def method_label(name: str) -> str:
    """The name of a method; settings in brackets stay: `radial VCL (epochs=5)`."""
    return _label(name, _METHODS)


def benchmark_label(name: str) -> str:
    """The name of a benchmark; a folder of data and settings in brackets stay."""
    return _label(name, _BENCHMARKS)


def data_label(name: str) -> str:
    """The name of a data set of photographs or of a table, or of a part of it."""
    return _label(name, _DATA_SETS)


def _label(name: str, known: Mapping[str, str]) -> str:
    key, space, rest = name.partition(" ")
    comma = "," * (key in known and rest.startswith("on "))
    return f"{known.get(key, key)}{comma}{space}{rest}"
