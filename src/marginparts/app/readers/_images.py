"""A folder of images: one subfolder a class, and ``unlabeled`` for the rest."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginparts.files.atomic import FileProblemError, problems_with
from marginparts.files.columns import check_kind, refuse
from marginparts.files.layout import Batch, Label, Layout, SampleSource, Wanted
from marginparts.files.streams import library_reads, optional_library

_ENDINGS = {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp"}
_UNLABELED = {"unlabeled", "unlabelled"}

#: Neither side of an image is larger than this many pixels.
_LARGEST_SIDE = 64

#: Pixels of an image as it is stored: a small file may say that it has billions.
_MOST_PIXELS = 2**26

#: So many images, spread over the folder, tell whether they are dark on bright.
_LOOKED_AT = 50


@dataclass
class ImageSource(SampleSource):
    """A folder of images, of which only some are in memory."""

    files: list[Path]
    labels: list[Label]

    def batches(self, size: int = 10_000) -> Iterator[Batch]:
        assert self.layout.image_shape is not None
        for first in range(0, len(self.files), size):
            files = self.files[first : first + size]
            pixels = np.stack([_brightness(f, self.layout.image_shape).ravel() for f in files])
            if self.layout.invert:
                pixels = 1 - pixels
            names = [file.relative_to(self.path).as_posix() for file in files]
            yield Batch(pixels, self.labels[first : first + size], {"file": names})


def open_images(path: Path, wanted: Wanted) -> ImageSource:
    """List the images of a folder, and decide on their common shape."""
    like = wanted.like
    check_kind(path, "image", like)
    instead = "the subfolders of images are their labels"
    refuse(path, wanted, "text", "label", "labels", "words", instead=instead)
    with problems_with(path, "read"):
        found = _find(path, loose_allowed=like is not None)
    files = [file for file, _ in found]
    layout = like or _layout(files)
    return ImageSource(path, layout, len(files), files, [label for _, label in found])


def _find(folder: Path, loose_allowed: bool) -> list[tuple[Path, Label]]:
    """Return the images and their labels: loose ones first, then by the names of subfolders."""
    loose = sorted(file for file in folder.iterdir() if _is_image(file))
    if loose and not loose_allowed:
        raise FileProblemError(
            f"{loose[0]} lies outside the subfolders of classes; move it to that of its class or "
            "to one named unlabeled."
        )
    found: list[tuple[Path, Label]] = [(file, None) for file in loose]
    for subfolder in sorted(child for child in folder.iterdir() if child.is_dir()):
        label = None if subfolder.name.lower() in _UNLABELED else subfolder.name
        if not subfolder.name.startswith("."):
            found += [(file, label) for file in sorted(subfolder.rglob("*")) if _is_image(file)]
    if not found:
        raise FileProblemError(
            f"The folder {folder} has no images; put them into one subfolder a class, as one of "
            f"{', '.join(sorted(_ENDINGS))}."
        )
    return found


def _is_image(file: Path) -> bool:
    # names with a dot in front are what systems leave beside images
    return file.suffix.lower() in _ENDINGS and not file.name.startswith(".") and not file.is_dir()


def _layout(files: list[Path]) -> Layout:
    """Return the shape of the first image, made small, and whether images are dark on bright."""
    width, height = _decode(files[0]).size
    shrink = min(1.0, _LARGEST_SIDE / max(width, height))
    shape = max(1, round(height * shrink)), max(1, round(width * shrink))
    border = np.ones(shape, dtype=bool)
    border[1:-1, 1:-1] = False
    spread = files[:: max(1, len(files) // _LOOKED_AT)][:_LOOKED_AT]
    bright = np.mean([_brightness(file, shape)[border].mean() for file in spread]) > 0.5
    n_columns = shape[0] * shape[1]
    return Layout("image", n_columns=n_columns, image_shape=shape, invert=bool(bright))


def _brightness(file: Path, shape: tuple[int, int]) -> NDArray[np.float32]:
    """Return an image (height, width) as brightness from 0 to 1."""
    image = _decode(file)
    size = shape[::-1]
    if image.size != size:
        library = optional_library("PIL.Image", "images", file)
        image = image.resize(size, library.Resampling.BILINEAR)
    return np.asarray(image, dtype=np.float32) / np.float32(255)


def _decode(file: Path) -> Any:
    """Return an image with one byte of brightness a pixel; what is transparent is white."""
    library = optional_library("PIL.Image", "images", file)
    turning = optional_library("PIL.ImageOps", "images", file)
    with problems_with(file, "read"):
        content = io.BytesIO(file.read_bytes())
    with library_reads(file, "image"), library.open(content) as stored:
        if stored.width * stored.height > _MOST_PIXELS:
            raise FileProblemError(
                f"{file} has {stored.width} x {stored.height} pixels; make it smaller."
            )
        image = turning.exif_transpose(stored)
        if image.mode.startswith("I"):
            # 16 bits a pixel, which Pillow would clip and not scale
            return library.fromarray((np.asarray(image) // 256).clip(0, 255).astype(np.uint8))
        if "transparency" in image.info or image.mode in {"RGBA", "LA", "PA", "RGBa", "La"}:
            image = image.convert("RGBA")
            paper = library.new("RGBA", image.size, "white")
            image = library.alpha_composite(paper, image)
        return image.convert("L")
