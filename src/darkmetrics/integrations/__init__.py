"""Results in the places where people keep them: MLflow runs, and objects as scikit-learn's users know them.

Import rule: nothing imports these modules but a user, and none of them imports its package before it is used.
"""
