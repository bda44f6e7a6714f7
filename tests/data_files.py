"""One valid file of every format, made from the same samples."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.io
import scipy.sparse
import zarr
from PIL import Image

X = np.random.default_rng(0).random((6, 12)).round(3)
Y = np.arange(6) % 3
IDS = [f"sample-{k}" for k in range(6)]
IMAGES = (X * 255).astype(np.uint8).reshape(6, 3, 4)


def write_npy(path: Path) -> Path:
    np.save(path / "x.npy", X)
    return path / "x.npy"


def write_npz(path: Path) -> Path:
    np.savez_compressed(path / "x.npz", X=X, y=Y)
    return path / "x.npz"


def write_sparse(path: Path) -> Path:
    scipy.sparse.save_npz(path / "s.npz", scipy.sparse.csr_array(np.where(X > 0.5, X, 0)))
    return path / "s.npz"


def write_mat(path: Path) -> Path:
    scipy.io.savemat(path / "x.mat", {"X": X, "y": Y})
    return path / "x.mat"


def write_mat_sparse(path: Path) -> Path:
    scipy.io.savemat(path / "s.mat", {"X": scipy.sparse.csc_array(np.where(X > 0.5, X, 0))}, do_compression=True)
    return path / "s.mat"


def write_mat73(path: Path) -> Path:
    """As MATLAB does: HDF5 after 512 bytes of text, axes turned round, the class as an attribute."""
    target = path / "x73.mat"
    with h5py.File(target, "w", userblock_size=512) as file:
        for name, values in (("X", X), ("y", Y[None].astype(float))):
            file.create_dataset(name, data=values.T).attrs["MATLAB_class"] = np.bytes_("double")
    with target.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return target


def write_h5(path: Path) -> Path:
    with h5py.File(path / "x.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(3, 4), compression="gzip", shuffle=True)
        file["y"] = Y
    return path / "x.h5"


def write_csv(path: Path) -> Path:
    lines = [",".join(["id", *(f"c{k}" for k in range(12)), "y"])]
    rows = zip(IDS, X, Y, strict=True)
    lines += [",".join([name, *map(str, row), f"class {label}"]) for name, row, label in rows]
    (path / "x.csv").write_text("\n".join(lines) + "\n")
    return path / "x.csv"


def write_parquet(path: Path) -> Path:
    columns = {"id": IDS, **{f"c{k}": X[:, k] for k in range(12)}}
    pq.write_table(pa.table({**columns, "y": [f"class {label}" for label in Y]}), path / "x.parquet")
    return path / "x.parquet"


def write_zarr(path: Path, zarr_format: int = 3) -> Path:
    group = zarr.open_group(path / "x.zarr", mode="w", zarr_format=zarr_format)
    group.create_array("X", data=X, chunks=(3, 4))
    group.create_array("y", data=Y)
    return path / "x.zarr"


def write_zarr2(path: Path) -> Path:
    return write_zarr(path, 2)


def write_images(path: Path, suffix: str = "png") -> Path:
    folder = path / f"images-{suffix}"
    for place, image in enumerate(IMAGES):
        target = folder / str(Y[place])
        target.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(target / f"image{place}.{suffix}", quality=95)
    return folder


def write_jpegs(path: Path) -> Path:
    return write_images(path, "jpg")


WRITERS = {
    "npy": write_npy,
    "npz": write_npz,
    "sparse": write_sparse,
    "mat": write_mat,
    "mat-sparse": write_mat_sparse,
    "mat73": write_mat73,
    "h5": write_h5,
    "csv": write_csv,
    "parquet": write_parquet,
    "zarr": write_zarr,
    "zarr2": write_zarr2,
    "png": write_images,
    "jpg": write_jpegs,
}
