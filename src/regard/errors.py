"""The exception tree. Every error is regard's own and also the built-in a torch user expects."""


class RegardError(Exception):
    """Anything regard refuses to do."""


class ShapeError(RegardError, ValueError):
    """Sizes that do not fit together."""


class DtypeError(RegardError, TypeError):
    """A tensor of the wrong type of number, or something that is not a tensor."""


class DeviceError(RegardError, RuntimeError):
    """Tensors on different devices."""


class ChoiceError(RegardError, ValueError):
    """A name or a number outside what is offered."""


class MaskError(RegardError, ValueError, TypeError):
    """A mask whose meaning is not certain."""


class PlanError(RegardError, ValueError, RuntimeError):
    """A forced plan that cannot serve the request."""


class PositionError(RegardError, IndexError):
    """An index that is not there; a loop over rows ends with it."""


class CallError(RegardError, RuntimeError):
    """A call that torch's function of the same name refuses with a RuntimeError."""


class AxisError(CallError, IndexError):
    """The same for a tensor without the axis that is asked for, which torch calls an IndexError."""


class UnsupportedError(CallError, NotImplementedError):
    """The same for numbers of a kind that nobody has taught to attend."""


class LayerError(RegardError, ValueError, AssertionError, RuntimeError):
    """Inputs that do not fit a layer of torch's; torch raises now one and now another of these for them."""


class StaleWeightsError(RegardError, RuntimeError):
    """A question about weights whose tensors have changed since."""


class TooLargeError(RegardError, RuntimeError, MemoryError):
    """A dense matrix above the limit."""


class NotNormalisedError(RegardError, TypeError, ValueError):
    """A question that needs a distribution, asked of weights that are none."""


class RecordError(RegardError, RuntimeError):
    """Attention of a model that cannot be recorded, or a recording that cannot be kept."""


class RecordingFileError(RegardError, OSError, ValueError):
    """A file that is no recording, or that is there already."""


class DamageError(RecordingFileError, ValueError):
    """Bytes of a recording that are not those that were written."""


class StorageError(RecordError, OSError):
    """A disk that takes no more."""


class DataError(RegardError, ValueError):
    """A table that cannot be learned from or predicted for: missing numbers, wrong sizes."""


class OutsideError(RegardError, ValueError):
    """A query that no point of the data reaches, where the caller asked to be told."""


class UnknownTextError(RegardError, ValueError):
    """A text that the encoder does not know: any answer about it would be made up."""


class MissingExtraError(RegardError, ImportError):
    """An optional package that is not installed."""


class FormatError(RegardError, ValueError):
    """A file that is not what it should be, or something that a file cannot hold."""
