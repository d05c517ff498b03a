"""Texts to vectors: the text recipe, the stamp of a space, the providers, and the one wrapper that checks them."""

from grandbo.embedding.embedder import Embedder, pad
from grandbo.embedding.factory import build_embedder
from grandbo.embedding.provider import Kind, Provider, RawVectors, Vectors
from grandbo.embedding.recipe import RECIPE, Window, windows
from grandbo.embedding.stamp import DIMENSIONS, UNCALIBRATED_CUTOFF_BP, Stamp

__all__ = [
    "DIMENSIONS",
    "RECIPE",
    "UNCALIBRATED_CUTOFF_BP",
    "Embedder",
    "Kind",
    "Provider",
    "RawVectors",
    "Stamp",
    "Vectors",
    "Window",
    "build_embedder",
    "pad",
    "windows",
]
