"""Which artifacts are one build for a series: those that ran the same code, byte for byte, while it was timed."""

from __future__ import annotations

import numpy as np

from tvmdash.detect.noise import IntArray


def number_builds(artifacts: IntArray, references: IntArray, contents: IntArray) -> tuple[IntArray, IntArray]:
    """The numbers of a series' artifacts and references by night, equal where their content is; 0 where unknown.

    contents: of what the artifact ran. An artifact stays one build, whatever else its content depends on did.
    """
    known = (contents != 0) & (artifacts != 0)
    if not known.any():
        return artifacts, references
    of_artifact: dict[int, int] = {}
    of_content: dict[int, int] = {}
    for artifact, content in zip(artifacts[known].tolist(), contents[known].tolist(), strict=True):
        build = of_artifact.setdefault(artifact, of_content.get(content, artifact))
        of_content.setdefault(content, build)
    builds, beside = ([of_artifact.get(key, key) for key in keys.tolist()] for keys in (artifacts, references))
    return np.array(builds, np.int64), np.array(beside, np.int64)
