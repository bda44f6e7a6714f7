"""The interface of a backend, with defaults for a backend that compiles and records nothing."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeAlias, TypeVar

from gwntf.backends.forms import KernelForm
from gwntf.core import Array, FloatArray, Relaxation

Answer = TypeVar("Answer")


class StackTask(NamedTuple):
    """Parameters of the transport of every fiber of a stack."""

    relaxation: Relaxation  # lam, alpha, beta
    offsets: tuple[float, float]  # this and the next of the kernel: see `geometry.kernels`
    whole: bool
    share: float  # what part of Psi is added to the marginal
    warm: bool  # whether log U is read
    keep: bool  # whether log U is written
    max_iter: int  # this and the next two: see `transport.scaling`
    tol: float
    check_every: int


StackTransport: TypeAlias = Callable[[tuple[Array, ...], StackTask], tuple[Array, Array | None]]
"""A compiled transport of every fiber along the middle axis of stacks (before, length, after).

It transports X to Y with stacks (X, Y, log U, marginal), the last two written, and returns the three terms of W for
every fiber, (3, columns) in float64, and which fibers kept their accuracy; of the others nothing is written. In a
recorded function, where the host cannot read that, the second result is None and the terms of those fibers are NaN.
"""

RowStep: TypeAlias = Callable[[Array, Array, Array | None, Array], tuple[Array, Array, Any]]
"""A step of some rows of A(1) under the least-squares loss, with a given A(-1), from one reading of the data.

Of (x, a, attraction, denominator) it returns the rows a (x A(-1) + attraction) / denominator, x' times these, and
<these, x A(-1)> in float64.
"""


class Backend(ABC):
    """An array library, with conversions to and from it.

    `xp` has the functions of the Python array API standard, so that the mathematics is written once. In addition to
    them it uses what NumPy arrays and torch tensors share: the methods ``reshape``, ``swapaxes`` and ``sum``,
    operators, and reading and writing by integer arrays.
    """

    name: str  # by which users choose it
    xp: Any  # array namespace
    default_dtype: str | None = None  # dtype of data where the user gives none; None keeps that of the data
    recording = False  # whether a function is being recorded, in which the host may not wait for the device
    block_entries: int  # preferred number of entries of a tile of samples; see `data.partition`

    fused_kl: Callable[[Array, Array], tuple[Array, Array]] | None = None
    """`transport.ratio_and_kl` of rows in one compiled pass; None where there is none."""

    @property
    @abstractmethod
    def long_fibers(self) -> int:
        """Length of fibers above which a kernel that is not stored as a matrix is faster."""

    @abstractmethod
    def asarray(self, values: Any, dtype: Any = None) -> Array:
        """Convert an array of any library, in C order; `dtype` is a NumPy dtype, by default the array's own."""

    @abstractmethod
    def to_numpy(self, values: Array) -> FloatArray:
        """Convert an array to NumPy."""

    @abstractmethod
    def as_given(self, values: Array, given: Any) -> Any:
        """Convert a result to the kind of array that the data were: a tensor for a tensor, if the backend can."""

    @abstractmethod
    def dtype(self, values: Array) -> Any:
        """NumPy dtype of an array."""

    @abstractmethod
    def sparse(self, matrix: Any, dtype: Any) -> Array:
        """Convert a sparse matrix of SciPy to something that can be multiplied with an array from the left."""

    def quiet(self) -> AbstractContextManager[Any]:
        """Silence floating-point warnings inside the block (columns that overflow are solved again)."""
        return nullcontext()

    def session(self, given: Any) -> AbstractContextManager[Any]:  # noqa: ARG002
        """Wrap all work on the given data: apply settings of the backend and translate its errors."""
        return nullcontext()

    def stack_transport(self, form: Callable[[], KernelForm], length: int, columns: int) -> StackTransport | None:  # noqa: B027
        """Return a compiled transport for so many fibers of that length, or None to go tile by tile.

        `form` returns the kernel as compiled code takes it, and is not called where nothing is compiled.
        """

    def row_step(self, other: Array) -> RowStep | None:  # noqa: B027
        """Return a compiled step with A(-1), or None where products of matrices are as fast."""

    @abstractmethod
    def zeros(self, shape: Sequence[int], like: Array) -> Array:
        """Return zeros in the number type of an array."""

    @abstractmethod
    def sum_by(self, rows: Array, index: Array, size: int, weights: Array | None = None) -> Array:
        """Sum rows, each times its weight, that have the same index; row k of the result is the sum for index k.

        The order of the sums is the same in every run.
        """

    def map(self, function: Callable[[slice], Answer], blocks: Iterable[slice]) -> list[Answer]:
        """Apply a function to independent blocks, perhaps several at a time; results in the order of the blocks.

        A backend short of memory may split a block in two, call the function for each part, and return both results.
        """
        return [function(block) for block in blocks]

    @abstractmethod
    def numbers(self, values: Sequence[Any]) -> Array:
        """Put numbers, of the host or of the backend, into one float64 array of the backend."""

    def recorded(  # noqa: B027
        self,
        function: Callable[..., tuple[Array, ...]],
        kernels: Sequence[tuple[Callable[[], KernelForm], int]],
        entries: int,
    ) -> Callable[..., tuple[Array, ...]] | None:
        """Return a function that does the same, recorded once and replayed; None where that is no gain or not possible.

        It takes and returns arrays, uses data with so many entries, and must not wait for the device; `kernels` are the
        forms and lengths of those it transports with. See `StackTransport` for fibers that lost their accuracy.
        """

    @abstractmethod
    def tile_columns(self, length: int) -> int:
        """Return how many fibers of this length to scale at once."""
