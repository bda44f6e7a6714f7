"""Scores of a clustering against true classes.

May import what lies below `estimators`; needs none of it. Start with its one file, `scores`.
"""

from gwntf.evaluation.scores import (
    SCORES,
    clustering_accuracy,
    clustering_scores,
    mutual_information,
    normalized_mutual_information,
    purity,
)

__all__ = [
    "SCORES",
    "clustering_accuracy",
    "clustering_scores",
    "mutual_information",
    "normalized_mutual_information",
    "purity",
]
