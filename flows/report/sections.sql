-- A view for each section of a report, over those of flows/views/views.sql. The first column is the
-- stream, and columns are called as they are shown, but for `merit`, what configurations are compared
-- by, and for `value`: where there is a column `what`, that is what it is called, in a chart for each.
-- Python registers:
--   told (learner, params, sketch_size, parameters)    what tells a configuration from others
--   metrics (metric, shown)                            what metrics are called
--   changes (dataset_hash, t)                          rounds after which a dataset changes
--   decisions                                          those of successive halving
-- and stored_curves and stored_windows of the runs that are drawn.

-- Configurations and the best of them, computed once.
CREATE TABLE described AS
FROM configurations JOIN (SELECT learner, params, parameters FROM told) USING (learner, params)
WHERE NOT rung;
CREATE TABLE best_of_each AS
SELECT *, learner || coalesce(' m = ' || sketch_size, '') AS name,
       if(error_rate_mean IS NULL, constant_mean_loss_mean, constant_error_rate_mean) AS constant
FROM best JOIN (SELECT learner, params, parameters FROM told) USING (learner, params);

-- Without Constant, the best first, and how many times as large the next one's error is.
CREATE VIEW learners_in_turn AS
SELECT *, lead(merit) OVER (PARTITION BY stream ORDER BY merit, learner) / nullif(merit, 0) AS ahead
FROM best_of_each WHERE learner <> 'Constant' ORDER BY merit, learner;

-- The learners that charts show: on each stream the best ten.
CREATE VIEW drawn AS
SELECT *, error_rate_mean IS NOT NULL AS has_errors FROM best_of_each
QUALIFY row_number() OVER (PARTITION BY stream, dataset_hash ORDER BY merit, learner) <= 10;

CREATE VIEW best_drawn AS
SELECT stream, learner, merit, microseconds_mean AS "µs a round", parameters FROM drawn;

CREATE VIEW drawn_runs AS
SELECT stream, learner, params, parameters, has_errors, unnest(run_ids) AS run_id FROM drawn;

-- What was measured up to each round, of those of a configuration's runs that have the most.
CREATE VIEW curves_of_best AS
WITH mine AS (
    SELECT d.stream, d.learner, d.parameters, t, dictionary_size,
           if(has_errors, mistakes / t, cumulative_loss / t) AS y
    FROM stored_curves JOIN drawn_runs d USING (run_id)
    QUALIFY max(t) OVER (PARTITION BY run_id) = max(t) OVER (PARTITION BY d.stream, d.learner)
), told_apart AS (
    SELECT stream, learner, parameters, t, unnest([y, dictionary_size]) AS y,
           unnest(['Progress', 'Points in the dictionary']) AS what
    FROM mine
)
SELECT stream, learner, parameters, what, t AS "round t", exact_mean(list(y)) AS value,
       min(y) AS least, max(y) AS largest
FROM told_apart WHERE y IS NOT NULL GROUP BY stream, learner, parameters, what, t
QUALIFY t >= 10 OR t = max(t) OVER (PARTITION BY stream, learner)
ORDER BY stream, what DESC, learner, t;

-- Each parameter that varies, and its values; sketch sizes, if they are few, have their own lines.
CREATE VIEW settings AS
SELECT learner, params, what, word, TRY_CAST(word AS DOUBLE) AS value,
       bool_and(value IS NOT NULL) OVER (PARTITION BY what) AS is_number,
       learner || if(sizes BETWEEN 2 AND 6, ' m = ' || coalesce(sketch_size::VARCHAR, 'None'), '') AS line
FROM (
    SELECT *, unnest(json_keys(params)) AS what, coalesce(params->>what, 'None') AS word,
           count(DISTINCT coalesce(sketch_size, -1)) OVER (PARTITION BY learner) AS sizes
    FROM told
) QUALIFY count(DISTINCT word) OVER (PARTITION BY learner, what) > 1;

-- The best configuration at each value of each parameter; of many values the best 64.
CREATE VIEW best_settings AS
FROM described JOIN settings USING (learner, params) WHERE merit IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY stream, line, what, word ORDER BY merit, params) = 1
    AND rank() OVER (PARTITION BY stream, line, what ORDER BY merit) <= 64;

CREATE VIEW parameter_values AS
SELECT stream, line, what, value, merit, parameters, n_runs AS runs FROM best_settings
WHERE is_number ORDER BY stream, what, line, value;

CREATE VIEW parameter_words AS
SELECT stream, line, what, word AS value, merit, parameters, n_runs AS runs FROM best_settings
WHERE NOT is_number ORDER BY stream, what, line, word;

-- What configurations cost and come to: the best 16 of each learner, and the Pareto front, on which
-- nothing is better in both.
CREATE VIEW cost_points AS
WITH costs AS (
    SELECT stream, learner, parameters, merit,
           unnest(['µs a round', 'points in the dictionary']) AS what,
           unnest([microseconds_mean, dictionary_size_mean]) AS value
    FROM described WHERE merit IS NOT NULL
), marked AS (
    SELECT *, merit < coalesce(min(merit) OVER (
        PARTITION BY stream, what ORDER BY value, merit, parameters
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 'inf'::DOUBLE) AS front
    FROM costs WHERE value > 0
    QUALIFY min(value) OVER (PARTITION BY what) < max(value) OVER (PARTITION BY what)
)
FROM (
    SELECT * EXCLUDE (front) FROM marked QUALIFY front OR row_number() OVER (
        PARTITION BY stream, what, learner ORDER BY merit, parameters) <= 16
    UNION ALL
    SELECT * EXCLUDE (front) REPLACE ('Pareto front' AS learner) FROM marked WHERE front
) ORDER BY stream, what DESC, learner = 'Pareto front', value;

-- Every metric over windows of rounds, and where the streams change.
CREATE VIEW windows_of_best AS
SELECT stream, coalesce(shown, replace(metric, '_', ' ')) AS metric, learner, last AS "last round",
       exact_mean(list(value)) AS value, min(value) AS least, max(value) AS largest
FROM (UNPIVOT (SELECT d.stream, d.learner, last, COLUMNS('^(mean_loss|error_rate|auc|balanced_accuracy|f1|kappa|log_loss|mae|rmse|r2)$')
               FROM stored_windows JOIN drawn_runs d USING (run_id))
      ON * EXCLUDE (stream, learner, last) INTO NAME metric VALUE value)
LEFT JOIN metrics m USING (metric)
GROUP BY ALL HAVING exact_mean(list(value)) IS NOT NULL ORDER BY stream, learner, last;

CREATE VIEW changes_drawn AS
SELECT DISTINCT stream, t AS "last round" FROM runs JOIN changes USING (dataset_hash)
WHERE "order" = 'as-stored' AND t < rounds ORDER BY ALL;

-- Loss above that of the best linear predictor in hindsight, how far that one predicts, and what was
-- read, on which a bound depends.
CREATE VIEW regrets AS
SELECT d.stream, d.learner, d.params, exact_mean(list(regret)) AS regret,
       deviation(list(regret)) AS deviation, max(comparator_largest) AS largest,
       list(run_id) AS run_ids, count(DISTINCT dataset_hash) AS datasets, max(rounds) AS rounds,
       any_value(COLUMNS('^(dataset|dataset_hash|order|max_rows|multiclass|positive_class)$'))
FROM runs r JOIN drawn_runs d USING (run_id) GROUP BY ALL ORDER BY d.stream, d.learner;

-- The best configurations' runs, to be compared in pairs.
CREATE VIEW best_runs AS
SELECT b.stream, b.learner, r.dataset_hash AS data, order_seed, exact_mean(list(score)) AS score
FROM measured r JOIN (SELECT stream, learner, unnest(run_ids) AS run_id FROM best_of_each) b USING (run_id)
GROUP BY b.stream, b.learner, r.dataset_hash, order_seed ORDER BY ALL;

CREATE VIEW as_good AS
SELECT c.stream, c.learner, c.params
FROM described c JOIN best_of_each b USING (stream, learner) WHERE c.whole AND c.merit = b.merit;

CREATE VIEW best_parameters AS
SELECT stream AS dataset, learner, parameters, n_runs AS runs, error_rate_mean AS "error rate",
       error_rate_std AS "± std", mean_loss_mean AS "mean loss", mean_loss_std AS "± std ",
       dictionary_size_mean AS dictionary, seconds_mean AS seconds,
       beats_constant AS "beats Constant", constant_error_rate_mean AS "Constant's error",
       constant_mean_loss_mean AS "its loss",
       COLUMNS('^(auc|balanced_accuracy|f1|kappa|log_loss|mae|rmse|r2)_mean$') AS '\1'
FROM best_of_each ORDER BY merit, learner;

-- A row for each rung of a learner on a dataset.
CREATE VIEW rungs_decided AS
SELECT dataset || CASE WHEN multiclass IS NOT NULL THEN ':all'
                       ELSE coalesce(':' || class_name, format(':{:g}', positive_class), '') END
       || if("order" = 'as-stored', '', ', ' || "order") AS dataset,
       learner, rung, rounds, count(*) AS configurations, count(*) FILTER (goes_on) AS continued,
       arg_min(parameters, rank) AS "the best", arg_min(mean_loss, rank) AS "its mean loss"
FROM decisions LEFT JOIN told USING (learner, params)
LEFT JOIN (SELECT DISTINCT dataset, positive_class, class_name FROM runs)
    USING (dataset, positive_class)
GROUP BY ALL ORDER BY ALL;

CREATE VIEW not_ok AS
SELECT dataset, learner, params, status, error FROM runs WHERE status <> 'ok' ORDER BY ALL LIMIT 50;

-- When, where and with which versions the runs were computed.
CREATE VIEW circumstances AS
SELECT unnest(['machines', 'versions', 'numbers_version of the learners', 'runs ended',
               'first computed by the sweeps']) AS what,
       unnest([string_agg(DISTINCT host, '; ' ORDER BY host),
               string_agg(DISTINCT version, '; ' ORDER BY version),
               string_agg(DISTINCT learner || ' ' || numbers_version, ', ' ORDER BY learner || ' ' || numbers_version),
               nullif(array_to_string(list_sort(list_distinct([strftime(min(finished_at), '%Y-%m-%d %H:%M UTC'), strftime(max(finished_at), '%Y-%m-%d %H:%M UTC')])), ' to '), ''),
               string_agg(DISTINCT computed_by, ', ' ORDER BY computed_by)]) AS value
FROM runs;
