"""
Topics in a sparse tensor of counts
===================================

Who bought what, and when? A tensor of counts with three axes, users, products and hours, is almost empty: here about
one entry in a hundred is not zero. It is passed as a sparse array and never converted to a dense one.

The hours are ordered, so ``"grid"`` is an appropriate cost for them: a purchase at nine is similar to one at ten. Users
and products are not ordered and are not transported.
"""

import matplotlib.pyplot as plt
import numpy as np
import sparse

from gwntf import SWIFT

# %%
# Simulated purchases: four habits, each with its own products and its own time of day.

rng = np.random.default_rng(0)
users, products, hours = 2000, 40, 24
habit_of_user = rng.integers(4, size=users)
products_of = rng.dirichlet([0.1] * products, 4)
peak = np.array([8, 12, 17, 21])
events = 12
who = np.repeat(np.arange(users), events)
habit = habit_of_user[who]
what = np.array([rng.choice(products, p=products_of[h]) for h in habit])
when = np.clip(np.rint(rng.normal(peak[habit], 1.5)), 0, hours - 1).astype(int)
X = sparse.COO(np.stack([who, what, when]), np.ones(len(who)), shape=(users, products, hours))
print(f"{X.nnz} of {np.prod(X.shape)} entries are not zero")

# %%
# ``SWIFT`` does not normalise counts. Its factors describe the habits: which products, at which hours, and how much of
# each habit a user has.

model = SWIFT(4, costs=(None, None, "grid"), max_iter=60, tol=0, n_init=2, random_state=0).fit(X)
users_factor, products_factor, hours_factor = model.factors_
order = hours_factor.argmax(axis=0).argsort()

figure, (top, bottom) = plt.subplots(2, 1, figsize=(8, 5), layout="constrained")
for number, part in enumerate(order):
    top.plot(hours_factor[:, part], color=f"C{number}", label=f"habit {number + 1}")
    top.axvline(peak[number], color=f"C{number}", linestyle=":", linewidth=1)
top.set(xlabel="hour", ylabel="share", title="hours (dotted: true peaks)", xlim=(0, 23))
top.legend(ncols=4, fontsize="small")
bottom.imshow(
    np.concatenate([products_factor.T[order], products_of]),
    aspect="auto",
    cmap="Greys",
    interpolation="nearest",
)
bottom.axhline(3.5, color="C3")
bottom.set(xlabel="product", title="products: estimated (above the line) and true (below)")
bottom.set_yticks(range(8), [*range(1, 5), *range(1, 5)])
plt.show()

# %%
# Each user is assigned to the habit that explains most of their purchases.

found = users_factor[:, order].argmax(axis=1)
print(f"{100 * (found == habit_of_user).mean():.0f}% of the users are assigned to their own habit")
