-- The views of a store's results. Python registers, from files whose checksums it has verified:
--   stored_runs, stored_curves, stored_windows, stored_predictions   the tables of the store
--   stored_members (sweep, run_id)        which runs each sweep has
--   chosen (sweep, run_id, halved)        the runs that are asked for; whether the sweep has halved
--   named (dataset_hash, dataset)         the names that those sweeps give their datasets
--   class_names (dataset_hash, positive_class, class_name)   those of classes that have some
-- and the functions exact_mean and deviation of lists: of the exact sum, so that no order of rows
-- matters, in 12 digits, and NULL for an empty list or one with anything that is not finite.

SET TimeZone = 'UTC';

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
           regexp_replace(coalesce(n.dataset, r.dataset), ',data_seed=\d+', '') AS family,
           coalesce(c.class_name, format('{:g}', r.positive_class)) AS class_name
    FROM stored_runs r LEFT JOIN named n USING (dataset_hash)
    LEFT JOIN class_names c
        ON r.dataset_hash = c.dataset_hash AND r.positive_class = c.positive_class
    WHERE run_id IN (SELECT run_id FROM chosen)
), families AS (
    SELECT family, count(DISTINCT dataset) AS seeds FROM mine GROUP BY family
), told AS (
    SELECT mine.*, if(seeds > 1, NULL, left(dataset_hash, 12)) AS stream_hash,
           if(seeds > 1, NULL, sharding) AS stream_sharding,
           if(seeds > 1, family, dataset)
           || CASE WHEN multiclass IS NOT NULL THEN ':all'
                   ELSE coalesce(':' || class_name, '') END
           || if(seeds > 1, format(', {} data seeds', seeds), '') AS stream_dataset
    FROM mine JOIN families USING (family)
)
SELECT * EXCLUDE (family),
       stream_dataset
       || if("order" = 'as-stored', '', ', ' || "order")
       || coalesce(format(' of {:,} rows', window_rows), '')
       || coalesce(format(', the first {:,} rows', max_rows), '') AS stream
FROM told;

-- Which runs each sweep has.
CREATE VIEW members AS FROM stored_members;

-- The runs that meet the conditions; without any, all.
CREATE VIEW selected AS FROM runs;

-- What a run's configuration is chosen by, and what is compared: less is better.
CREATE VIEW measured AS
SELECT *, coalesce(error_rate, mean_loss) AS chosen_by, chosen_by AS score FROM selected;

-- What a run came to on the halves of its stream: mean losses, and error rates.
CREATE VIEW halves AS
WITH ends AS (
    SELECT run_id, max(rounds) OVER (PARTITION BY stream, dataset_hash) AS n, n // 2 AS half
    FROM selected
)
SELECT run_id, a.cumulative_loss / half AS first_loss, a.mistakes / half AS first_error,
       (z.cumulative_loss - a.cumulative_loss) / (n - half) AS second_loss,
       (z.mistakes - a.mistakes) / (n - half) AS second_error
FROM ends JOIN stored_curves a USING (run_id) JOIN stored_curves z USING (run_id)
WHERE a.t = half AND z.t = n;

-- A run is `well` if it has ended with a loss, and `good` if it has what is compared. `repeat` is
-- the same for runs of a configuration on one order and with one learner seed.
CREATE VIEW marked AS
SELECT *, status = 'ok' AND mean_loss IS NOT NULL AS well,
       coalesce(well AND isfinite(mean_loss) AND isfinite(chosen_by) AND isfinite(score), false)
           AS good,
       hash(stream, dataset_hash, sharding, learner, learner_code, params, numbers_version,
            order_seed, learner_seed) AS repeat
FROM measured;

-- Runs of repeats that have another run too, with other metrics, which stands for them.
CREATE VIEW again AS
SELECT run_id FROM marked
WHERE repeat IN (SELECT repeat FROM marked GROUP BY repeat HAVING count(*) > 1)
QUALIFY row_number() OVER (PARTITION BY repeat ORDER BY good DESC, well DESC, run_id) > 1;

-- Runs to the rungs of a halving: on a stream of which the sweep has a longer one.
CREATE VIEW rungs AS
SELECT run_id FROM (
    SELECT run_id, coalesce(max_rows, 9e18) < max(coalesce(max_rows, 9e18)) OVER (
        PARTITION BY sweep, dataset_hash, positive_class, multiclass, "order", window_rows, sharding
    ) AS rung
    FROM selected JOIN chosen USING (run_id) WHERE halved
) WHERE rung
EXCEPT SELECT run_id FROM chosen WHERE NOT halved;

-- `configurations`: one row a stream and configuration, over order seeds and learner seeds, best
-- first on each stream. Averages are over the runs that ended well. It is `whole` if all its runs
-- are good, and as many as those of any configuration of its learner on the stream; one run of a
-- configuration that draws nothing stands for all learner seeds. Runs of older code are left out if
-- newer code has computed them too.
CREATE VIEW averages AS
WITH listed AS (
    SELECT
        stream, any_value(stream_dataset) AS dataset, stream_hash AS dataset_hash,
        stream_sharding AS sharding, any_value("order") AS "order",
        any_value(window_rows) AS window_rows, any_value(max_rows) AS max_rows, learner,
        learner_code, params, any_value(sketch_size) AS sketch_size, any_value(loss) AS loss, max(rounds) AS rounds,
        count(*) FILTER (WHERE well) AS n_runs, count(*) AS repeats,
        count(*) FILTER (WHERE status = 'diverged') AS diverged,
        count(*) FILTER (WHERE status = 'failed') AS failed,
        count(*) FILTER (WHERE well AND NOT good AND chosen_by IS NOT NULL) AS infinite,
        count(*) FILTER (WHERE good) AS good_runs, bool_and(run_id IN (FROM rungs)) AS rung,
        count(DISTINCT learner_seed) AS seeds,
        list(chosen_by) FILTER (WHERE good) AS chosen_by,
        list(COLUMNS('^(mean_loss|error_rate|constant_mean_loss|constant_error_rate|seconds|regret|'
                     'dictionary_size|auc|balanced_accuracy|f1|kappa|log_loss|mae|rmse|r2)$'))
            FILTER (WHERE well),
        list(seconds / rounds * 1e6) FILTER (WHERE well) AS microseconds,
        list(run_id ORDER BY run_id) AS run_ids
    FROM marked WHERE run_id NOT IN (FROM again)
    GROUP BY stream, stream_hash, stream_sharding, learner, learner_code, params, numbers_version
    QUALIFY coalesce(numbers_version, 0) = max(coalesce(numbers_version, 0)) OVER (
        PARTITION BY stream, stream_hash, stream_sharding, learner, learner_code, params)
), averaged AS (
    SELECT stream, dataset, dataset_hash, sharding, "order", window_rows, max_rows, learner,
        learner_code, params, sketch_size, loss, rounds, n_runs, repeats, diverged, failed,
        infinite, rung,
        exact_mean(mean_loss) AS mean_loss_mean, deviation(mean_loss) AS mean_loss_std,
        exact_mean(error_rate) AS error_rate_mean, deviation(error_rate) AS error_rate_std,
        exact_mean(COLUMNS('^(seconds|microseconds|regret|dictionary_size|auc|balanced_accuracy|f1|'
                           'kappa|log_loss|mae|rmse|r2|constant_mean_loss|constant_error_rate)$'))
            AS '\0_mean',
        exact_mean(chosen_by) AS merit,
        good_runs = repeats AND max(repeats) OVER learner_there
            <= repeats * if(seeds = 0, greatest(max(seeds) OVER learner_there, 1), 1) AS complete,
        run_ids
    FROM listed WINDOW learner_there AS (PARTITION BY stream, dataset_hash, sharding, learner)
)
SELECT * EXCLUDE (complete), complete AND merit IS NOT NULL AS whole,
       beats(learner, mean_loss_mean, error_rate_mean, constant_mean_loss_mean,
             constant_error_rate_mean) AS beats_constant
FROM averaged
ORDER BY dataset, dataset_hash, "order", window_rows NULLS FIRST, max_rows NULLS FIRST, sharding,
         rung OR NOT whole, merit, learner, params, learner_code;

CREATE VIEW configurations AS FROM averages;  -- later those that have been computed once

-- One row a stream and learner: the best of its whole configurations, by error rate where there are
-- classes and else by mean loss; of equal ones the first by the text of its parameters.
CREATE VIEW best AS
SELECT * FROM configurations WHERE whole AND NOT rung
QUALIFY row_number() OVER (
    PARTITION BY stream, dataset_hash, sharding, learner ORDER BY merit, params, learner_code) = 1
ORDER BY dataset, dataset_hash, "order", window_rows NULLS FIRST, max_rows NULLS FIRST, sharding,
         merit, learner;

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
