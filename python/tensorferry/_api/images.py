"""Public conversions between images and tensors; each loads its implementation when first called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorferry._untraced import untraced

if TYPE_CHECKING:
    import numpy as np
    import torch

__all__ = ["images_to_tensor", "tensor_to_images"]


def images_to_tensor(
    images: Any,
    *,
    layout: str = "CHW",
    bgr: bool = False,
    scale: float | str = "auto",
    mean: Any = None,
    std: Any = None,
    dtype: Any = "float32",
    out: Any = None,
    device: Any = None,
) -> torch.Tensor:
    """Convert images to a normalised tensor, in one pass over their memory.

    The result is ``(x * scale - mean) / std`` for each channel.

    Parameters
    ----------
    images : array, tensor, DLPack producer, PIL image, or a list or tuple of them
        One image of shape (H, W, C) or (H, W), a batch of shape (N, H, W, C), or a list of images that are equal in
        shape and dtype. 1 to 4 channels of uint8, uint16, float16, bfloat16, float32 or float64; any strides and byte
        order, so crops, flips and read-only views need no copy. torch tensors on a CUDA device are converted there.
    layout : {"CHW", "HWC"}
        Of the result: planes of one channel each, or pixels as they were.
    bgr : bool
        Swap blue and red: the images are as OpenCV reads them (BGR, BGRA), the tensor is RGB (RGBA). The fourth
        channel stays the fourth.
    scale : "auto" or float
        "auto" is 1/255 for uint8, 1/65535 for uint16 and 1 for floating-point images.
    mean, std : float, or sequence of C floats, optional
        In the units of the scaled values, and in the order of the *tensor's* channels (RGB with ``bgr=True``).
        Without them nothing is subtracted or divided.
    dtype : {"float32", "float16", "bfloat16", "float64"}
        Of the result; torch's and NumPy's dtypes do as well.
    out : torch.Tensor, optional
        A tensor of the result's shape and of `dtype`, of any strides (``channels_last``), on the host or a CUDA
        device. Filled and returned; autograd is told.
    device : str or torch.device, optional
        Where the tensor is wanted: host images of uint8 go to a CUDA device as bytes, and become numbers there. Without
        it, where `out` is, or where the images are.

    Returns
    -------
    torch.Tensor
        Contiguous, shape (C, H, W) or (H, W, C); (N, ...) for a batch or a list. On the host, private memory from
        the pool of host copies, which like that of ``torch.from_numpy`` cannot be resized in place.

    Raises
    ------
    LayoutError
        For other axes, for more than 4 channels (as a CHW image read as HWC has), or for images of a list that differ
        in shape; the first that differs is named.
    DTypeError
        For dtypes whose range of values is not known, such as int64.
    AutogradError
        For images that require grad: the graph would be cut.
    ArgumentError
        For arguments that contradict each other, such as three means for images of one channel.
    BufferMismatchError
        For an `out` that does not fit, or overlaps an image.
    DeviceError
        For a `device` that is not there, for images on several devices without one, and for work on a device while
        its stream is being captured into a graph.

    Notes
    -----
    Computed as ``x * (scale / std) - mean / std`` in float64 and rounded once, to nearest, ties to even. The distance
    from the exact value is at most half a unit in the last place of the result and ``2**-50 * max(abs(x * scale / std),
    abs(mean / std))``; from uint8 to float32 it is at most half a unit in the last place and
    ``2**-28 * abs(scale / std)``, where the product is computed in two parts. ``x / 255`` and ``x / 65535`` come out
    rounded correctly. Results are the same on every processor.

    On a CUDA device the work is enqueued in torch's current stream, as torch's own operations are: one launch of a
    kernel of ours for a batch of bytes that becomes planes (``layout="CHW"``) of float32, float16 or bfloat16. Other
    bytes, and all where there are no kernels, are looked up in a table by torch; results are those of the host, bit for
    bit. Images of other dtypes that lie on the device are computed there by torch in float64, and float16 and bfloat16
    results are rounded through float32; those that lie on the host are converted on the host, and sent.

    Host images never block, except for room in the ring of pinned memory on the way to a device; the GIL is released.
    Images on devices of other kinds, and those of other libraries, are waited for, copied to the host and converted
    there.

    Examples
    --------
    >>> import numpy as np, tensorferry as ferry
    >>> image = np.array([[[0, 51, 255], [255, 102, 0]]], np.uint8)  # one row of two pixels
    >>> ferry.images_to_tensor(image, bgr=True)
    tensor([[[1.0000, 0.0000]],
    <BLANKLINE>
            [[0.2000, 0.4000]],
    <BLANKLINE>
            [[0.0000, 1.0000]]])
    """
    from tensorferry._images.to_tensor import images_to_tensor as implementation

    return untraced(implementation)(
        images, layout=layout, bgr=bgr, scale=scale, mean=mean, std=std, dtype=dtype, out=out, device=device
    )


def tensor_to_images(
    tensor: Any,
    *,
    layout: str = "CHW",
    bgr: bool = False,
    scale: float | str = "auto",
    mean: Any = None,
    std: Any = None,
    dtype: Any = "uint8",
) -> np.ndarray[Any, Any]:
    """Convert a normalised tensor back to images, in one pass: the inverse of :func:`images_to_tensor`.

    The result is ``(y * std + mean) / scale`` for each channel, rounded and clamped to the range of `dtype`.

    Parameters
    ----------
    tensor : tensor, array or DLPack producer
        One image of shape (C, H, W), or a batch of shape (N, C, H, W), with 1 to 4 channels; of any strides, float16,
        bfloat16, float32 or float64. It may require grad: only its values are read.
    layout : {"CHW", "HWC"}
        Of the tensor.
    bgr : bool
        Swap red and blue: the tensor is RGB, and the images are to be as OpenCV writes them.
    scale : "auto" or float
        As it was given to :func:`images_to_tensor`; "auto" is 1/255 for `dtype` uint8, 1/65535 for uint16 and 1 for
        floating-point images.
    mean, std : float, or sequence of C floats, optional
        As they were given to :func:`images_to_tensor`, in the order of the tensor's channels.
    dtype : {"uint8", "uint16", "float16", "float32", "float64"}
        Of the images.

    Returns
    -------
    numpy.ndarray
        Shape (H, W, C), or (N, H, W, C) for a batch. Private, writable and C-contiguous, as OpenCV needs it to draw.

    Raises
    ------
    LayoutError
        For other axes, or for more than 4 channels (as a HWC tensor read as CHW has).
    DTypeError
        For tensors of other dtypes, or other dtypes of images.
    ArgumentError
        For arguments that contradict each other, such as three means for images of one channel.

    Notes
    -----
    Computed as ``y * (std / scale) + mean / scale`` in float64. Integers are rounded to nearest, ties to even, and
    clamped; NaN becomes 0. Floating-point images are rounded once and not clamped. What :func:`images_to_tensor` made
    of uint8 images as float32 or float64 comes back exactly with the same arguments.

    Host tensors never block; the GIL is released. Tensors on other devices are waited for, and copied by torch.

    Examples
    --------
    >>> import numpy as np, torch, tensorferry as ferry
    >>> ferry.tensor_to_images(torch.tensor([[[0.0, 0.2]], [[0.5, 1.5]], [[float("nan"), -1.0]]]))
    array([[[  0, 128,   0],
            [ 51, 255,   0]]], dtype=uint8)
    """
    from tensorferry._images.to_images import tensor_to_images as implementation

    return untraced(implementation)(tensor, layout=layout, bgr=bgr, scale=scale, mean=mean, std=std, dtype=dtype)
