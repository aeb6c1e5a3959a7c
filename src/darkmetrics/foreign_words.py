"""Words of other libraries for what this one has: parameters, functions and attributes."""

# Parameters, and the words for them that have no other meaning. A call with such a word is made, with a warning.
_SCORE_WORDS = (
    "score y_prob y_proba y_probs y_pred_proba y_pred_prob y_scores prediction predictions pred preds pred_proba prob "
    "probs proba probas probability_scores probabilities y_hat x"
)
PARAMETERS = {
    name: frozenset(words.split())
    for name, words in {
        "y_true": "target targets label y y_test actual actuals ground_truth references truth",
        "y_score": f"{_SCORE_WORDS} scores",
        "scores": f"{_SCORE_WORDS} y_score models",
        "y_pred": "prediction predictions pred preds y_hat predicted_labels predicted_class y_predicted",
        "sample_weight": "weight weights sample_weights",
        "data": "frame df table dataset current_data",
        "metrics": "metric scoring scorers scorer",
        "missingness": "mechanism missing missing_mechanism",
        "clusters": "cluster cluster_id cluster_ids",
        "by": "segment segments groupby group_by sensitive_features sensitive_feature hue slices",
        "time": "timestamp timestamps timestamp_column timestamp_column_name time_column date date_column chunk_column",
        "period": "chunk_period freq frequency window_size",
        "confidence_level": "confidence level conf_level ci_level credible_level",
        "confidence_levels": "levels",
        "threshold": "cutoff cut_off decision_threshold",
        "rng": "random_state seed",
        "missing_label": "missing_value missing_values na_value",
        "pos_label": "positive_label positive_class",
        "score_bins": "bins n_bins",
        "n_repeats": "n_runs n_simulations repeats",
        "mask": "masking hide",
        "methods": "method",
        "targets": "target thresholds_by_metric",
        # Fields of mechanisms.
        "probability": "p prob probs proba probas probabilities q",
        "propensity": "p pi prob ps propensities propensity_score propensity_scores",
        "strata": "stratum segment segments group groups by",
        "estimator": "model classifier clf learner",
        "X": "features covariates",
        "n_folds": "cv n_splits folds",
        "scored_at": "timestamp time scored predicted_at",
        "labeled_at": "label_time labeled confirmed_at",
        "maturity": "horizon",
        "calibrator": "calibration",
        "n_draws": "n_samples draws",
        "delta": "log_odds_ratio",
    }.items()
}

# Arguments that have no place in a call: the sentence that answers them. The call is shown without them.
NOT_NEEDED = {
    "average": "Metrics are those of the positive class. For another average pass "
    "metrics=functools.partial(sklearn.metrics.f1_score, average='macro')",
    "multi_class": "Evaluate one class against all others, with pos_label=",
    "cv": "Nothing is fitted to the labels that has to be held out",
    "estimator": "Pass the scores of a model, not the model",
    "model": "Pass the scores of a model, not the model",
    "X": "Pass the scores of a model, not its features",
    "verbose": "There is nothing to print",
    "n_jobs": "One process is enough",
    "stratify": "Set missingness=dm.missing.ByScore(strata=...) if labels are missing by score within segments",
}
# Arguments that stand for a setting of a method.
RESAMPLES = frozenset(
    ["n_resamples", "n_bootstrap", "n_bootstraps", "n_boot", "n_boots", "n_iter", "n_samples", "n_iterations"]
)
# Arguments that belong to a question that is asked of the result: how the call goes on after the call of the function.
ASKED_OF_RESULT = {
    ("evaluate", "thresholds"): "dm.threshold_curves({call}, thresholds={value})",
    ("evaluate", "odds"): "{call}.sensitivity({value})",
    ("evaluate_by", "targets"): "{call}.alerts({value})",
    **{
        ("evaluate_by", name): f"{{call}}.alerts({{'recall': 0.8}}, {name}={{value}})"
        for name in ("false_discovery_rate", "correction", "min_labels", "since", "last_periods", "known_alerts")
    },
}

# Lengths of periods in the words of pandas and NannyML.
PERIOD_WORDS = {
    **dict.fromkeys(["H", "h", "hourly"], "hour"),
    **dict.fromkeys(["D", "d", "1d", "daily"], "day"),
    **dict.fromkeys(["W", "w", "1w", "weekly"], "week"),
    **dict.fromkeys(["M", "MS", "ME", "m", "1mo", "monthly"], "month"),
    **dict.fromkeys(["Q", "QS", "QE", "q", "1q", "quarterly"], "quarter"),
    **dict.fromkeys(["Y", "YS", "YE", "A", "y", "1y", "yearly", "annual"], "year"),
}

# Fields of mechanisms, with the mechanism that each states where no other is stated.
FIELDS = {
    "reference": "Unknown",
    "strata": "ByScore",
    "propensity": "Propensity",
    "probability": "Fixed",
    "prevalence": "ExponentialTilt",
    **dict.fromkeys(["age", "delay", "scored_at", "labeled_at", "as_of", "maturity", "reviewed"], "Delayed"),
}
OTHER_FIELDS = {
    **dict.fromkeys(["calibration", "reference_data", "reference_df"], "reference"),
    "stratum": "strata",
    "probabilities": "probability",
    "propensities": "propensity",
}

# Functions and classes of other libraries, and the call that does the same, as the text after "dm.".
_BY_GROUP = "evaluate_by('label', 'score', data=df, by='segment')"
_BY_TIME = "evaluate_by('label', 'score', data=df, time='day', period='week')"
_EVALUATE = "evaluate(y_true, y_score)"
_CURVES = f"threshold_curves(dm.{_EVALUATE})"
FUNCTIONS = {
    **dict.fromkeys(["classification_report", "estimate", "score", "predict", "run", "performance"], _EVALUATE),
    **dict.fromkeys(
        ["confusion_matrix", "ConfusionMatrixDisplay"], "evaluate(y_true, y_score, metrics=['tp', 'fp', 'fn', 'tn'])"
    ),
    "precision_recall_fscore_support": "evaluate(y_true, y_score, metrics=['precision', 'recall', 'f1'])",
    "auc": "evaluate(y_true, y_score, metrics='roc_auc')",
    "matthews_corrcoef": "evaluate(y_true, y_score, metrics='mcc')",
    "make_scorer": "evaluate(y_true, y_score, metrics={'name': function})",
    **dict.fromkeys(["get_scorer_names", "available_metrics", "metric_names", "list_scorers"], "list_metrics()"),
    "get_scorer": "metrics.registered('recall')",
    **dict.fromkeys(["roc_curve", "precision_recall_curve", "det_curve"], _CURVES),
    **dict.fromkeys(
        ["best_threshold", "optimal_threshold", "find_threshold", "TunedThresholdClassifierCV"],
        f"{_CURVES}.best_threshold('f1')",
    ),
    "RocCurveDisplay": f"plotting.plot_roc(dm.{_EVALUATE})",
    "PrecisionRecallDisplay": f"plotting.plot_precision_recall(dm.{_EVALUATE})",
    **dict.fromkeys(
        ["calibration_curve", "CalibrationDisplay", "calibration_plot"], f"plotting.plot_reliability(dm.{_EVALUATE})"
    ),
    **dict.fromkeys(["histplot", "kdeplot", "displot"], f"plotting.plot_distribution(dm.{_EVALUATE}, 'recall')"),
    **dict.fromkeys(["barplot", "pointplot", "catplot", "plot"], f"plotting.plot_metrics(dm.{_EVALUATE})"),
    **dict.fromkeys(["lineplot", "relplot"], f"{_BY_TIME}.plot_over_time('recall')"),
    **dict.fromkeys(["MetricFrame", "selection_rate", "count", "slice_metrics"], _BY_GROUP),
    **dict.fromkeys(
        ["demographic_parity_difference", "equalized_odds_difference", "equal_opportunity_difference"],
        f"{_BY_GROUP}.disparity('recall')",
    ),
    **{
        f"{rate}_rate": f"evaluate(y_true, y_score, metrics='{name}')"
        for rate, name in {
            "true_positive": "recall",
            "false_positive": "fpr",
            "false_negative": "fnr",
            "true_negative": "specificity",
        }.items()
    },
    **dict.fromkeys(["CBPE", "DLE", "PerformanceCalculator", "PerformanceEstimator", "monitor"], _BY_TIME),
    **dict.fromkeys(
        ["Report", "ClassificationPreset", "TestSuite", "Dataset", "DataDefinition"],
        "evaluate('label', 'score', data=df).report('report.html')",
    ),
    **dict.fromkeys(
        ["UnivariateDriftCalculator", "DataDriftPreset", "drift", "compare_periods"],
        "compare_evaluations(dm.evaluate(y_after, s_after), dm.evaluate(y_before, s_before))",
    ),
    **dict.fromkeys(
        ["compare_models", "permutation_test", "ttest_rel", "mcnemar"], "compare(y_true, {'a': s_a, 'b': s_b})"
    ),
    "bootstrap": "paper.bootstrap(dm.EvaluationSet(y_true, y_score))",
    **dict.fromkeys(["confidence_interval", "conf_int", "ci"], f"{_EVALUATE}['recall'].interval(0.95)"),
    **dict.fromkeys(["sensitivity_analysis"], f"{_EVALUATE}.sensitivity(odds=3)"),
    "tipping_point": f"{_EVALUATE}.tipping_point('recall', 0.8)",
    **dict.fromkeys(["impute", "mice", "calibrate", "reject_inference"], f"{_EVALUATE}.posterior"),
    **dict.fromkeys(["alerts", "alert"], f"{_BY_GROUP}.alerts({{'recall': 0.8}})"),
    **dict.fromkeys(
        ["load", "read", "load_evaluation", "from_parquet"], "EvaluationSet.from_parquet('counts.parquet')"
    ),
    **dict.fromkeys(["from_csv", "read_csv", "from_pandas"], "evaluate('label', 'score', data='june.csv')"),
    **dict.fromkeys(["suggest_labels", "sample_size", "power"], f"{_EVALUATE}.variance_decomposition('recall')"),
    **dict.fromkeys(["cross_val_score", "cross_validate", "simulate"], "backtest(y_true, y_score)"),
    **dict.fromkeys(["MCAR", "mcar"], "missing.Random()"),
    **dict.fromkeys(["MAR", "mar"], "missing.ByScore()"),
    **dict.fromkeys(["MNAR", "mnar"], "missing.ByLabel()"),
    **dict.fromkeys(["missingness", "mechanisms", "label_missingness"], "missing.ByScore()"),
}

# Attributes of results with the same meaning as a method of ours: called with a warning.
RESULT_METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    "to_pandas": ("to_frame", ("pandas",)),
    "to_polars": ("to_frame", ("polars",)),
    "to_arrow": ("to_frame", ("pyarrow",)),
    **dict.fromkeys(["to_dataframe", "to_df", "as_frame", "as_dataframe", "summary_frame"], ("to_frame", ())),
    **dict.fromkeys(["to_html", "save_html", "write_html"], ("report", ())),
    **dict.fromkeys(["as_dict", "asdict", "dict"], ("to_dict", ())),
    **dict.fromkeys(["json", "as_json"], ("to_json", ())),
    "describe": ("summary", ()),
    "show": ("plot", ()),
}
# Other attributes of results, and the code that says the same.
RESULT_ATTRIBUTES = {
    **dict.fromkeys(["to_markdown", "to_md"], "result.report('report.md')"),
    **dict.fromkeys(["save", "export"], "result.report('report.html')"),
    "to_csv": "result.to_frame('pandas').to_csv('result.csv')",
    "to_parquet": "result.to_frame('pandas').to_parquet('result.parquet')",
    "to_excel": "result.to_frame('pandas').to_excel('result.xlsx')",
    "table": "result.to_frame()",
    "df": "result.to_frame()",
    "by_group": "result.to_frame()",
    "overall": "result.total",
    **dict.fromkeys(["difference", "ratio", "gap"], "result.disparity('recall')"),
    "estimates": "result['recall'].mean()",
    "scores": "result['recall'].mean()",
    **dict.fromkeys(["check", "passes", "meets", "probability"], "result.target_probability('recall', 0.8)"),
    **dict.fromkeys(["p_value", "pvalue"], "result.probability_worse('recall')"),
    **dict.fromkeys(["confidence_interval", "conf_int", "interval", "ci"], "result['recall'].interval(0.95)"),
    **dict.fromkeys(["distribution", "samples"], "result['recall'].rvs(1000)"),
    **dict.fromkeys(["std", "stderr", "standard_error"], "result['recall'].std()"),
    "mean": "result['recall'].mean()",
    **dict.fromkeys(["confusion_matrix", "counts"], "result.data.counts()"),
    **dict.fromkeys(["best_threshold", "optimal_threshold"], "dm.threshold_curves(result).best_threshold('f1')"),
    **dict.fromkeys(["plot_roc", "roc_curve"], "dm.plotting.plot_roc(result)"),
    "plot_distribution": "result.plot('recall')",
    **dict.fromkeys(["to_mlflow", "log"], "result.to_dict(flat=True)"),
    **dict.fromkeys(["suggest_labels", "sample_size"], "result.variance_decomposition('recall')"),
    "compare": "dm.compare_evaluations(result, earlier)",
}
# The same for the distribution of one metric.
DISTRIBUTION_METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    **dict.fromkeys(["confidence_interval", "conf_int", "credible_interval", "ci", "hdi"], ("interval", ())),
    **dict.fromkeys(["quantile", "isf_quantile"], ("ppf", ())),
    **dict.fromkeys(["sample", "samples", "draw", "resample", "random"], ("rvs", ())),
    **dict.fromkeys(["expect", "expected_value"], ("mean", ())),
    "variance": ("var", ()),
    "sd": ("std", ()),
}
DISTRIBUTION_ATTRIBUTES = {
    **dict.fromkeys(["plot", "hist", "kde", "show"], "result.plot('recall')"),
    "percentile": "result['recall'].ppf(0.05)",
    **dict.fromkeys(["value", "estimate", "point", "point_estimate", "statistic", "score"], "result['recall'].mean()"),
    **dict.fromkeys(["stderr", "standard_error", "se", "sem", "std_error", "bse"], "result['recall'].std()"),
    **dict.fromkeys(["low", "lower", "lower_bound", "lower_confidence_boundary"], "result['recall'].interval().low"),
    **dict.fromkeys(["high", "upper", "upper_bound", "upper_confidence_boundary"], "result['recall'].interval().high"),
    **dict.fromkeys(["bootstrap_distribution", "values"], "result['recall'].rvs(1000)"),
    **dict.fromkeys(["pvalue", "p_value"], "result['recall'].cdf(0.8)"),
    "pdf": "result['recall'].cdf(0.8)",
    "min": "result['recall'].support().low",
    "max": "result['recall'].support().high",
}
