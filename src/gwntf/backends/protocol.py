"""The interface of a backend, with defaults for backends that neither compile nor record functions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeAlias, TypeVar

from gwntf.backends.forms import KernelForm
from gwntf.core import Array, FloatArray, Relaxation

Result = TypeVar("Result")


class StackTask(NamedTuple):
    """Parameters of the transport of every fiber of a stack."""

    relaxation: Relaxation  # lam, alpha, beta
    offsets: tuple[float, float]  # these two are attributes of the kernel: see `geometry.kernels`
    all_normal: bool
    share: float  # fraction of Psi that is added to the marginal
    warm: bool  # whether log U is read
    keep: bool  # whether log U is written
    max_iter: int  # for these three see `transport.scaling`
    tol: float
    check_every: int


class FusedSweeps(NamedTuple):
    """Compiled versions of the functions of `losses.sweeps`, which write to factors stored component by component."""

    rows: Callable[[Array, Array, Array, Array, int], None]  # (columns, linear, gram, curvature of every row, count)
    unit_columns: Callable[[Array, Array, Array, int], None]  # (columns, linear, gram, count)


StackTransport: TypeAlias = Callable[[tuple[Array, ...], StackTask], tuple[Array, Array | None]]
"""A compiled transport of every fiber along the middle axis of stacks (before, length, after).

It transports X to Y for stacks (X, Y, log U, marginal), writes to the last two, and returns the three terms of W for
every fiber, (3, columns) in float64, and which fibers are accurate. Nothing is written for the others. In a recorded
function, where the host cannot read this, the second result is None and the terms of inaccurate fibers are NaN.
"""


class Backend(ABC):
    """An array library and conversions to and from it.

    `xp` has the functions of the Python array API standard, so that the mathematics is written once. Code may also use
    what NumPy arrays and torch tensors have in common: the methods ``reshape``, ``swapaxes`` and ``sum``, operators,
    and indexing with integer arrays.
    """

    name: str  # value of `engine`
    xp: Any  # array namespace
    default_dtype: str | None = None  # dtype of the data by default; None keeps that of X
    uneven_lines = False  # whether `stack_transport` supports `UnevenForm`
    recording = False  # whether a function is being recorded, without host synchronisation
    block_entries: int  # preferred number of entries of a tile of samples; see `data.partition`

    fused_kl: Callable[[Array, Array], tuple[Array, Array]] | None = None
    """`transport.ratio_and_kl` of rows in one compiled pass; None if not available.

    The ratio may be overwritten by the next call in this thread.
    """

    fused_sweeps: FusedSweeps | None = None
    """The sweeps of the least-squares loss; None if they are not compiled."""

    @property
    @abstractmethod
    def long_fibers(self) -> int:
        """Length of fibers above which a kernel that is not stored as a matrix is faster."""

    @abstractmethod
    def asarray(self, values: Any, dtype: Any = None) -> Array:
        """Convert an array of any library to C order; `dtype` is a NumPy dtype, by default that of the array."""

    @abstractmethod
    def to_numpy(self, values: Array) -> FloatArray:
        """Convert an array to NumPy."""

    @abstractmethod
    def as_given(self, values: Array, given: Any) -> Any:
        """Convert a result to the array type of the data: a tensor for a tensor, where the backend supports it."""

    @abstractmethod
    def dtype(self, values: Array) -> Any:
        """NumPy dtype of an array."""

    @abstractmethod
    def sparse(self, matrix: Any, dtype: Any) -> Array:
        """Convert a SciPy sparse matrix to an object that supports ``matrix @ array``."""

    def quiet(self) -> AbstractContextManager[Any]:
        """Silence floating-point warnings inside the block (columns that overflow are detected and solved again)."""
        return nullcontext()

    def session(self, given: Any) -> AbstractContextManager[Any]:  # noqa: ARG002
        """Context of all work on the given data: applies settings of the backend and converts its errors."""
        return nullcontext()

    def stack_transport(  # noqa: B027
        self, form: Callable[[], KernelForm | None], length: int, columns: int
    ) -> StackTransport | None:
        """Return a compiled transport for `columns` fibers of that length, or None to process tiles.

        `form` returns the kernel for compiled code, or None if it has none; it is not called if nothing is compiled.
        """

    @abstractmethod
    def zeros(self, shape: Sequence[int], like: Array) -> Array:
        """Return zeros with the dtype and device of an array."""

    def product(self, a: Array, b: Array) -> Array:
        """Return a @ b; the result may be overwritten by the next call in this thread."""
        return a @ b

    @abstractmethod
    def sum_by(self, rows: Array, index: Array, size: int, weights: Array | None = None) -> Array:
        """Return the weighted sums of rows with the same index; row k of the result is the sum for index k.

        Additions are in the same order in every run.
        """

    def map(self, function: Callable[[slice], Result], blocks: Iterable[slice]) -> list[Result]:
        """Apply a function to independent blocks, possibly in parallel; return the results in order.

        A backend short of memory may split a block in two, call the function for each part, and return both results.
        """
        return [function(block) for block in blocks]

    @abstractmethod
    def numbers(self, values: Sequence[Any]) -> Array:
        """Return scalars, of the host or of the backend, as one float64 array of the backend."""

    def recorded(  # noqa: B027
        self,
        function: Callable[..., tuple[Array, ...]],
        kernels: Sequence[tuple[Callable[[], KernelForm | None], int]],
        entries: int,
    ) -> Callable[..., tuple[Array, ...]] | None:
        """Return an equivalent function that is recorded once and replayed; None where that is slower or not supported.

        The function takes and returns arrays, processes data with `entries` entries, and must not synchronise with the
        host; `kernels` are the forms and lengths of its kernels. See `StackTransport` for inaccurate fibers.
        """

    @abstractmethod
    def tile_columns(self, length: int) -> int:
        """Return the number of fibers of this length in a tile."""
