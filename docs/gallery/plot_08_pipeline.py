"""
Pipelines and grid search in scikit-learn
=========================================

Every factorization is a transformer: it can be a step of a pipeline, and a grid search can choose its parameters.
Here the parts are found without labels, and a linear classifier predicts the digit from the embedding. How many parts
does it need, and does the loss matter?
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gwntf import GWNTF
from gwntf.datasets import load_digits_tensor

X, y = load_digits_tensor()
rows, y = X[:600].reshape(600, -1), y[:600]

# %%
# ``sample_shape`` folds the rows of a matrix into images, so that the other steps of the pipeline receive rows. The
# costs are parameters like any other.

parts = GWNTF(sample_shape=(8, 8), graph_reg=0, max_iter=60, tol=0, random_state=0)
pipeline = make_pipeline(parts, StandardScaler(), LogisticRegression(max_iter=2000))
grid = {
    "gwntf__n_components": [5, 10, 20, 40],
    "gwntf__costs": [(None, None, None), (None, "grid", "grid")],
}
search = GridSearchCV(pipeline, grid, cv=3).fit(rows, y)
print(f"best: {search.best_params_}, accuracy {search.best_score_:.3f}")

# %%
# Cross-validated accuracy.

results = search.cv_results_
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for costs, name in zip(grid["gwntf__costs"], ("KL", "transport along both axes"), strict=True):
    lines = [i for i, params in enumerate(results["params"]) if params["gwntf__costs"] == costs]
    ranks = [results["params"][i]["gwntf__n_components"] for i in lines]
    ax.errorbar(
        ranks,
        results["mean_test_score"][lines],
        results["std_test_score"][lines],
        marker="o",
        capsize=3,
        label=name,
    )
ax.set(
    xlabel="n_components",
    ylabel="accuracy of the classifier",
    xscale="log",
    xticks=grid["gwntf__n_components"],
)
ax.set_xticks(grid["gwntf__n_components"], grid["gwntf__n_components"])
ax.minorticks_off()
ax.legend()
ax.grid(alpha=0.3)
plt.show()

# %%
# The number of parts matters much more than the loss, because the digits are centred.
