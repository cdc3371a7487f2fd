"""TVM builds side by side: found, built, proved, kept and removed. `provide.provide` is the way in."""
