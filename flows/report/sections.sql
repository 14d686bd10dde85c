-- A view for each section of a report, over those of flows/results/views.sql. Python registers:
--   told (learner, params, parameters)                     what tells a configuration from others
--   curves_drawn, windows_drawn                            the tables of the runs that are drawn
--   settings (learner, params, line, name, value, word)    each parameter that varies, and its value

-- Configurations and the best of them, computed once.
CREATE TABLE described AS FROM configurations JOIN told USING (learner, params) WHERE NOT rung;
CREATE TABLE best_of_each AS FROM best JOIN told USING (learner, params);

-- The learners that charts show: on each stream the best ten.
CREATE VIEW drawn AS
SELECT *, error_rate_mean IS NOT NULL AS has_errors FROM best_of_each
QUALIFY row_number() OVER (PARTITION BY stream, dataset_hash ORDER BY merit, learner) <= 10;

CREATE VIEW drawn_runs AS
SELECT stream, learner, parameters, has_errors, unnest(run_ids) AS run_id FROM drawn;

-- What was measured up to each round, of those of a configuration's runs that have the most.
CREATE VIEW curves_of_best AS
WITH mine AS (
    SELECT d.stream, d.learner, d.parameters, t, dictionary_size,
           if(has_errors, mistakes / t, cumulative_loss / t) AS y
    FROM curves_drawn JOIN drawn_runs d USING (run_id)
    QUALIFY max(t) OVER (PARTITION BY run_id) = max(t) OVER (PARTITION BY d.stream, d.learner)
)
SELECT stream, learner, parameters, t, exact_mean(list(y)) AS mean, min(y) AS least, max(y) AS largest,
       exact_mean(list(dictionary_size)) AS size, min(dictionary_size) AS least_size,
       max(dictionary_size) AS largest_size
FROM mine GROUP BY stream, learner, parameters, t
QUALIFY t >= 10 OR t = max(t) OVER (PARTITION BY stream, learner)
ORDER BY stream, learner, t;

-- The best configuration at each value of each parameter; of many values the best 64.
CREATE VIEW parameter_values AS
SELECT stream, line, name, value, word, merit, parameters, n_runs
FROM described JOIN settings USING (learner, params) WHERE merit IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY stream, line, name, value, word
                           ORDER BY merit, params) = 1
    AND rank() OVER (PARTITION BY stream, line, name ORDER BY merit) <= 64
ORDER BY stream, line, value, word;

-- What configurations cost and come to: the Pareto front, on which nothing is better in both, and
-- the best 16 of each learner.
CREATE VIEW cost_points AS
WITH costs AS (
    SELECT stream, learner, parameters, merit,
           unnest(['µs a round', 'points in the dictionary']) AS kind,
           unnest([microseconds_mean, dictionary_size_mean]) AS cost
    FROM described WHERE merit IS NOT NULL
), marked AS (
    SELECT *, merit < coalesce(min(merit) OVER (
        PARTITION BY stream, kind ORDER BY cost, merit, parameters
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 'inf'::DOUBLE) AS front
    FROM costs WHERE cost > 0
)
FROM marked QUALIFY front OR row_number() OVER (
    PARTITION BY stream, kind, learner ORDER BY merit, parameters) <= 16
ORDER BY stream, kind, cost;

-- Every metric over windows of rounds.
CREATE VIEW windows_of_best AS
SELECT stream, learner, metric, last, exact_mean(list(value)) AS mean, min(value) AS least,
       max(value) AS largest
FROM (UNPIVOT (SELECT d.stream, d.learner, last, COLUMNS('^(mean_loss|error_rate|auc|balanced_accuracy|f1|kappa|log_loss|mae|rmse|r2)$')
               FROM windows_drawn JOIN drawn_runs d USING (run_id))
      ON * EXCLUDE (stream, learner, last) INTO NAME metric VALUE value)
GROUP BY stream, learner, metric, last HAVING mean IS NOT NULL ORDER BY stream, learner, last;

-- Loss above that of the best linear predictor in hindsight, and how far that one predicts.
CREATE VIEW regrets AS
SELECT d.stream, d.learner, d.parameters, exact_mean(list(regret)) AS regret,
       deviation(list(regret)) AS deviation, max(comparator_largest) AS largest
FROM runs JOIN drawn_runs d USING (run_id)
GROUP BY d.stream, d.learner, d.parameters ORDER BY d.stream, d.learner;

-- The best configurations' runs, to be compared in pairs.
CREATE VIEW best_runs AS
SELECT b.stream, b.learner, r.dataset_hash AS data, order_seed, exact_mean(list(score)) AS score
FROM measured r JOIN (SELECT stream, learner, unnest(run_ids) AS run_id FROM best_of_each) b USING (run_id)
GROUP BY b.stream, b.learner, r.dataset_hash, order_seed ORDER BY ALL;

-- How each stream is read: a row a dataset.
CREATE VIEW streams_read AS
SELECT *, count(*) OVER (PARTITION BY stream) AS data FROM (
    SELECT stream, dataset_hash, dataset, "order", max_rows, multiclass, positive_class,
           max(rounds) AS rounds
    FROM runs GROUP BY ALL
) ORDER BY stream, dataset_hash NULLS LAST;

CREATE VIEW as_good AS
SELECT c.stream, c.learner, c.params
FROM described c JOIN best_of_each b USING (stream, learner) WHERE c.whole AND c.merit = b.merit;

CREATE VIEW best_by_loss AS
SELECT stream, learner FROM described WHERE whole
QUALIFY rank() OVER (PARTITION BY stream ORDER BY mean_loss_mean) = 1 ORDER BY stream, learner;
