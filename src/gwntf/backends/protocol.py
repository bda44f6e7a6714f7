"""What the mathematics may ask of a backend."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from gwntf.backends.forms import KernelForm
from gwntf.core import Array, FloatArray, Relaxation

Answer = TypeVar("Answer")


class StackTask(NamedTuple):
    """What is to be done to every fiber of a stack."""

    relaxation: Relaxation  # lam, alpha, beta
    # offsets, whole: of the kernel: see `geometry.kernels`
    offsets: tuple[float, float]
    whole: bool
    share: float  # What part of Psi is added to the marginal
    # warm, keep: whether log U is read, and whether it is written
    warm: bool
    keep: bool
    # max_iter, tol, check_every: see `transport.scaling`
    max_iter: int
    tol: float
    check_every: int


class StackTransport(Protocol):
    """A compiled transport of every fiber along the middle axis of stacks (before, length, after)."""

    def __call__(self, stacks: tuple[Array, ...], task: StackTask) -> tuple[Array, Array | None]:
        """Transport X to Y with stacks (X, Y, log U, marginal), the last two written.

        Returns the three terms of W for every fiber, (3, columns) in float64, and which fibers kept their accuracy; of
        the others nothing is written. In a recorded function nobody can look at that: there the second answer is None,
        and the terms of those fibers are not numbers.
        """


class RowStep(Protocol):
    """A step of some rows of A(1) under the least-squares loss, with a given A(-1), from one reading of the data."""

    def __call__(self, x: Array, a: Array, attraction: Array | None, denominator: Array) -> tuple[Array, Array, Any]:
        """Return the rows a (x A(-1) + attraction) / denominator, x' times these, and <these, x A(-1)> in float64."""


class Backend(Protocol):
    """An array library and a way in and out of it.

    `xp` has the functions of the Python array API standard, so that the mathematics is written once. Beside them
    it uses what NumPy arrays and torch tensors share: the methods ``reshape``, ``swapaxes`` and ``sum``, operators, and
    reading and writing by integer arrays.
    """

    @property
    def name(self) -> str:
        """Name by which users choose it."""

    @property
    def xp(self) -> Any:
        """Array namespace."""

    @property
    def default_dtype(self) -> str | None:
        """Name of the number type of data where the user asks for none; None keeps that of the data."""

    @property
    def long_fibers(self) -> int:
        """Length of fibers above which a kernel that is not held as a matrix pays."""

    @property
    def recording(self) -> bool:
        """Whether a function is being recorded, in which the host may not wait for the device."""

    @property
    def block_entries(self) -> int:
        """Preferred number of entries of a tile of samples; see `data.partition`."""

    def asarray(self, values: Any, dtype: Any = None) -> Array:
        """Bring an array of any library in, in rows; `dtype` is a NumPy dtype, by default the array's own."""

    def to_numpy(self, values: Array) -> FloatArray:
        """Bring an array out."""

    def as_given(self, values: Array, given: Any) -> Any:
        """Bring a result out as the data came in: a tensor for a tensor, where the backend knows tensors."""

    def dtype(self, values: Array) -> Any:
        """NumPy dtype of an array."""

    def sparse(self, matrix: Any, dtype: Any) -> Array:
        """Bring a sparse matrix of SciPy in, as something that can be multiplied with an array from the left."""

    def quiet(self) -> AbstractContextManager[Any]:
        """Silence floating-point warnings inside the block (columns that overflow are solved again)."""

    def session(self, given: Any) -> AbstractContextManager[Any]:
        """Wrap all work on the given data: settings that it needs, and errors that only the backend knows."""

    def stack_transport(self, form: Callable[[], KernelForm], length: int, columns: int) -> StackTransport | None:
        """Return a compiled transport for so many fibers of that length, or None to go tile by tile.

        `form` gives the kernel as compiled code takes it, and is not called where nothing is compiled.
        """

    def row_step(self, other: Array) -> RowStep | None:
        """Return a compiled step with A(-1), or None where products of matrices are as good."""

    @property
    def fused_kl(self) -> Callable[[Array, Array], tuple[Array, Array]] | None:
        """`transport.ratio_and_kl` of rows in one compiled pass; None where there is none."""

    def zeros(self, shape: Sequence[int], like: Array) -> Array:
        """Return zeros in the number type of an array."""

    def sum_by(self, rows: Array, index: Array, size: int, weights: Array | None = None) -> Array:
        """Sum rows, each times its weight, that have the same index; row k of the result is the sum for index k.

        The order of the sums is the same in every run.
        """

    def map(self, function: Callable[[slice], Answer], blocks: Iterable[slice]) -> list[Answer]:
        """Apply a function to independent blocks, perhaps several at a time; answers in the order of the blocks.

        A backend short of memory may cut a block in two, call the function for each part, and give both answers.
        """

    def numbers(self, values: Sequence[Any]) -> Array:
        """Put numbers, of the host or of the backend, into one float64 array of the backend."""

    def recorded(
        self,
        function: Callable[..., tuple[Array, ...]],
        kernels: Sequence[tuple[Callable[[], KernelForm], int]],
        entries: int,
    ) -> Callable[..., tuple[Array, ...]] | None:
        """Return a function that does the same, recorded once and replayed; None where that is no gain or not possible.

        It takes and returns arrays, goes through data with so many entries, and inside it nothing may wait for the
        device; `kernels` are the forms and lengths of those it transports with. See `StackTransport` for fibers that
        were not held.
        """

    def tile_columns(self, length: int) -> int:
        """How many fibers of this length to take through the scalings at once."""
