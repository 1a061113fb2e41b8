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
    """A tensor without the axis that a call names; torch raises IndexError for it."""


class UnsupportedError(CallError, NotImplementedError):
    """Numbers of a dtype for which attention is not implemented."""


class LayerError(RegardError, ValueError, AssertionError, RuntimeError):
    """Inputs that do not fit a layer of torch, which raises any of these built-in errors for them."""


class DistributedError(RegardError, RuntimeError):
    """Attention over several processes that cannot go on: a rank has died, hangs or asks for something else."""


class StaleWeightsError(RegardError, RuntimeError):
    """A question about weights whose tensors have changed since."""


class TracingError(RegardError, RuntimeError):
    """Code that torch's script compiler or exporter cannot read."""


class TooLargeError(RegardError, RuntimeError, MemoryError):
    """A dense matrix above the limit."""


class NotNormalisedError(RegardError, TypeError, ValueError):
    """A question that needs rows that sum to 1, asked of weights whose rows do not."""


class NoSuchAttributeError(RegardError, AttributeError):
    """A method of tensors that lazy weights do not have; the message names the question to ask."""


class RecordError(RegardError, RuntimeError):
    """Attention of a model that cannot be recorded, or a recording that cannot be kept."""


class ContextParallelError(RegardError, RuntimeError):
    """A model or a batch whose sequence cannot be shared out over processes."""


class IncompleteRecordingWarning(UserWarning):
    """Layers of a model that are not in its recording, because their attention cannot be recorded."""


class RecordingFileError(RegardError, OSError, ValueError):
    """A file that is no recording, or that is there already."""


class DamageError(RecordingFileError, ValueError):
    """Bytes of a recording that are not those that were written."""


class StorageError(RecordError, OSError):
    """A disk that is full or cannot be written to."""


class DataError(RegardError, ValueError):
    """A table that cannot be learned from or predicted for: missing numbers, wrong sizes."""


class SkippedRowsWarning(UserWarning):
    """Rows of a file that are left out, because they are bad and the caller chose bad='skip'."""


class TrainingError(RegardError, ArithmeticError, RuntimeError):
    """A training run whose loss is no number any more."""


class OutsideError(RegardError, ValueError):
    """A query that no data point reaches, where the caller chose outside='raise'."""


class UnknownTextError(RegardError, ValueError):
    """A text that the encoder does not know: any answer about it would be made up."""


class MissingExtraError(RegardError, ImportError):
    """An optional package that is not installed."""


class FormatError(RegardError, ValueError):
    """A file that is not what it should be, or something that a file cannot hold."""
