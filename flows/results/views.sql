-- The views of a store's results. Python registers, from files whose checksums it has verified:
--   stored_runs, stored_curves, stored_windows, stored_predictions   the tables of the store
--   members (sweep, run_id)               which runs each sweep has
--   chosen (sweep, run_id, halved)        the runs that are asked for; whether the sweep has halved
--   named (dataset_hash, dataset)         the names that those sweeps give their datasets
-- and the functions exact_mean and deviation of lists: of the exact sum, so that no order of rows
-- matters, in 12 digits, and NULL for an empty list or one with anything that is not finite.

CREATE MACRO mean_of(x, which) AS exact_mean(list(x) FILTER (WHERE which));
CREATE MACRO deviation_of(x, which) AS deviation(list(x) FILTER (WHERE which));

-- A configuration beats Constant in mean loss, and in errors where there are classes.
CREATE MACRO beats(learner, loss, error, constant_loss, constant_error) AS
    CASE WHEN learner <> 'Constant' AND loss IS NOT NULL AND constant_loss IS NOT NULL
         THEN loss < constant_loss AND coalesce(error < constant_error, true) END;

-- One row a run. Beside the columns of the table `runs`: the stream that it read, in words, with
-- the words for its dataset alone and the dataset's identity. Generated datasets that differ in
-- their data seed only are one stream, of no identity; a data seed is a repeat.
CREATE VIEW runs AS
WITH mine AS (
    SELECT r.* REPLACE (coalesce(n.dataset, r.dataset) AS dataset),
           regexp_replace(coalesce(n.dataset, r.dataset), ',data_seed=\d+', '') AS family
    FROM stored_runs r LEFT JOIN named n USING (dataset_hash)
    WHERE run_id IN (SELECT run_id FROM chosen)
), families AS (
    SELECT family, count(DISTINCT dataset) AS seeds FROM mine GROUP BY family
), told AS (
    SELECT mine.*, if(seeds > 1, NULL, left(dataset_hash, 12)) AS stream_hash,
           if(seeds > 1, family, dataset)
           || CASE WHEN multiclass IS NOT NULL THEN ':all'
                   WHEN positive_class IS NOT NULL THEN format(':{:g}', positive_class)
                   ELSE '' END
           || if(seeds > 1, format(', {} data seeds', seeds), '') AS stream_dataset
    FROM mine JOIN families USING (family)
)
SELECT * EXCLUDE (family),
       stream_dataset
       || if("order" = 'as-stored', '', ', ' || "order")
       || coalesce(format(' of {:,} rows', window_rows), '')
       || coalesce(format(', the first {:,} rows', max_rows), '') AS stream
FROM told;

-- The runs that meet the conditions; without any, all.
CREATE VIEW selected AS FROM runs;

-- What a run's configuration is chosen by, and what is compared: less is better.
CREATE VIEW measured AS
SELECT *, coalesce(error_rate, mean_loss) AS chosen_by, chosen_by AS score FROM selected;

-- Runs to the rungs of a halving: on a stream of which the sweep has a longer one.
CREATE VIEW rungs AS
SELECT run_id FROM (
    SELECT run_id, coalesce(max_rows, 9e18) < max(coalesce(max_rows, 9e18)) OVER (
        PARTITION BY sweep, dataset_hash, positive_class, multiclass, "order", window_rows, sharding
    ) AS rung
    FROM selected JOIN chosen USING (run_id) WHERE halved
) WHERE rung
EXCEPT SELECT run_id FROM chosen WHERE NOT halved;

-- One row a stream and configuration, over order seeds and learner seeds, best first on each
-- dataset. Averages are over the runs that ended well. `whole` says whether all its runs have, and
-- whether there are as many as of any configuration of its learner on the stream; a configuration
-- without random numbers has one run for each order. Runs of older code are left out if newer code
-- has computed them too.
CREATE VIEW configurations AS
WITH marked AS (
    SELECT measured.*, rungs.run_id IS NOT NULL AS rung,
           status = 'ok' AND mean_loss IS NOT NULL AS well,
           coalesce(well AND isfinite(chosen_by) AND isfinite(score), false) AS good
    FROM measured LEFT JOIN rungs USING (run_id)
), averaged AS (
    SELECT
        stream, any_value(stream_dataset) AS dataset, stream_hash AS dataset_hash,
        any_value("order") AS "order", any_value(window_rows) AS window_rows,
        any_value(max_rows) AS max_rows, learner, learner_code, params,
        any_value(sketch_size) AS sketch_size, bool_and(rung) AS rung,
        count(*) FILTER (WHERE well) AS n_runs, count(*) AS repeats,
        count(*) FILTER (WHERE good) AS good_runs,
        count(DISTINCT (dataset_hash, order_seed)) AS orders, count(learner_seed) = 0 AS seedless,
        count(*) FILTER (WHERE status = 'diverged') AS diverged,
        count(*) FILTER (WHERE status = 'failed') AS failed,
        mean_of(mean_loss, well) AS mean_loss_mean,
        deviation_of(mean_loss, well) AS mean_loss_std,
        mean_of(error_rate, well) AS error_rate_mean,
        deviation_of(error_rate, well) AS error_rate_std,
        mean_of(seconds, well) AS seconds_mean,
        mean_of(seconds / rounds * 1e6, well) AS microseconds_mean,
        mean_of(constant_mean_loss, well) AS constant_mean_loss_mean,
        mean_of(constant_error_rate, well) AS constant_error_rate_mean,
        mean_of(regret, well) AS regret_mean,
        mean_of(dictionary_size, well) AS dictionary_size_mean,
        mean_of(COLUMNS('^(auc|balanced_accuracy|f1|kappa|log_loss|mae|rmse|r2)$'), well) AS '\0_mean',
        any_value(loss) AS loss, max(rounds) AS rounds,
        mean_of(chosen_by, good) AS merit,
        mean_of(score, good) AS score_mean,
        list(run_id ORDER BY run_id) AS run_ids
    FROM marked
    GROUP BY stream, stream_hash, sharding, learner, learner_code, params, numbers_version
    QUALIFY coalesce(numbers_version, 0) = max(coalesce(numbers_version, 0)) OVER (
        PARTITION BY stream, stream_hash, sharding, learner, learner_code, params)
)
SELECT * EXCLUDE (good_runs, orders, seedless),
       beats(learner, mean_loss_mean, error_rate_mean, constant_mean_loss_mean,
             constant_error_rate_mean) AS beats_constant,
       merit IS NOT NULL AND good_runs = repeats
       AND (repeats = max(repeats) OVER learner_there
            OR seedless AND orders = max(orders) OVER learner_there) AS whole
FROM averaged
WINDOW learner_there AS (PARTITION BY stream, dataset_hash, learner)
ORDER BY stream, dataset_hash, rung OR NOT whole, merit, learner, params, learner_code;

-- One row a stream and learner: the best of its whole configurations, by error rate where there are
-- classes and else by mean loss; of equal ones the first by the text of its parameters.
CREATE VIEW best AS
SELECT * FROM configurations WHERE whole AND NOT rung
QUALIFY row_number() OVER (
    PARTITION BY stream, dataset_hash, learner ORDER BY merit, params, learner_code) = 1
ORDER BY stream, dataset_hash, merit, learner;

-- The tables with rows for rounds, with what everyone plots and the run that they are of.
CREATE VIEW curves AS
SELECT c.*, cumulative_loss / t AS mean_loss, mistakes / t AS error_rate,
       stream, dataset, learner, params, order_seed, learner_seed, status
FROM stored_curves c JOIN (SELECT * EXCLUDE (mean_loss, error_rate, dictionary_size) FROM selected)
USING (run_id) ORDER BY run_id, t;

CREATE VIEW windows AS
SELECT w.*, stream, dataset, learner, params, order_seed, learner_seed
FROM stored_windows w
JOIN (SELECT run_id, stream, dataset, learner, params, order_seed, learner_seed FROM selected)
USING (run_id) ORDER BY run_id, first;

CREATE VIEW predictions AS
SELECT p.*, stream, dataset, learner, params, order_seed, learner_seed
FROM stored_predictions p
JOIN (SELECT run_id, stream, dataset, learner, params, order_seed, learner_seed FROM selected)
USING (run_id) ORDER BY run_id, t;
