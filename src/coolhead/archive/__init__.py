"""Logits, features, labels and domains of one classifier, in one file."""

from coolhead.archive.domain_archive import DomainArchive
from coolhead.archive.loading import load_archive

__all__ = ["DomainArchive", "load_archive"]
