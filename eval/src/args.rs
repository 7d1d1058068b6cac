//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::plan::CaseOverrides;

const CODES: &str = "Exit codes: 0 every run had the outcome that its case expects; 1 an error; 2 the command line or a case \
is wrong; 4 the budget was spent before all runs had started; 9 a run had another outcome; 130 interrupted.";

/// Runs declarative cases with the real daemon, each in a separate home directory, and reports the results.
#[derive(Debug, Parser)]
#[command(name = "runner-eval", version, arg_required_else_help = true, after_help = CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: EvalCommand,
}

/// Options for every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options for every command")]
pub(crate) struct GlobalOptions {
    /// Print one JSON object
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print nothing during the runs
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Directory of the cases [default: `eval/cases`, here or in a parent directory]
    #[arg(id = "folder_of_cases", long = "cases", global = true, value_name = "DIR", env = "RUNNER_EVAL_CASES")]
    pub(crate) cases: Option<PathBuf>,
    /// Directory of the results [default: `results` next to the directory of the cases]
    #[arg(id = "folder_of_results", long = "results", global = true, value_name = "DIR", env = "RUNNER_EVAL_RESULTS")]
    pub(crate) results: Option<PathBuf>,
    /// Directory of `runnerd` and `runnerctl` [default: the directory of this program, otherwise PATH]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) bin_dir: Option<PathBuf>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    /// List the cases: agent, expected outcome, results so far, and missing requirements
    List,
    Run(RunArgs),
    Report(ReportArgs),
    Compare(CompareArgs),
    /// Remove the results of one case
    Clean {
        /// Id of the case
        case: String,
    },
    Import(ImportArgs),
    Prompts(PromptsArgs),
    /// Write the schemas of all files and replies to a directory
    #[command(hide = true)]
    Schemas {
        /// The directory
        folder: PathBuf,
    },
}

/// Run cases and keep the results
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  runner-eval run hello                        one case, once
  runner-eval run ./mine.toml --runs 5 --jobs 2
  runner-eval run calculator-go --executor claude --model opus --label opus
  runner-eval run --all --variant fast=claude:haiku --variant codex --runs 5 --max-cost-usd 20
  runner-eval run --all --continue             the missing runs of every case")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct RunArgs {
    /// Ids of cases, or paths of case files
    #[arg(required_unless_present = "all", value_name = "CASE")]
    pub(crate) cases: Vec<String>,
    /// Run all cases in the directory
    #[arg(long, conflicts_with = "cases")]
    pub(crate) all: bool,
    /// Number of runs of each case
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    /// Number of runs at the same time
    #[arg(short, long, value_name = "J", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) jobs: u16,
    /// Count existing results, and run only the missing ones
    #[arg(long = "continue")]
    pub(crate) continues: bool,
    /// Kind of agent, instead of the one in the case
    #[arg(long, value_name = "KIND")]
    pub(crate) executor: Option<String>,
    /// Model, instead of the one in the case
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Run each case with this agent; can be repeated. LABEL names its runs in `compare`
    #[arg(long = "variant", value_name = "[LABEL=]KIND[:MODEL]", conflicts_with_all = ["executor", "model", "label"])]
    pub(crate) variants: Vec<CaseOverrides>,
    /// Directory with prompt templates: `worker.md`, `planner.md`, `repair.md`, `reviewer.md`
    #[arg(long, value_name = "DIR")]
    pub(crate) templates: Option<PathBuf>,
    /// Name of these runs in `report --by label` and `compare`
    #[arg(long, value_name = "NAME")]
    pub(crate) label: Option<String>,
    /// Start no more runs once this command's runs have cost this much, in dollars, or a cost is unknown
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) max_cost_usd: Option<f64>,
    /// Keep the directories of the runs
    #[arg(long)]
    pub(crate) keep: bool,
    /// Open the web view on the run, and stay until Ctrl-C
    #[arg(long)]
    pub(crate) ui: bool,
    /// Port of the web view
    #[arg(long, value_name = "PORT", default_value_t = 3001, requires = "ui")]
    pub(crate) port: u16,
}

/// Make cases from a list of tasks with one JSON object per line, such as SWE-bench
///
/// Keys: `id` or `instance_id`; `repo`; `base` or `base_commit`; `goal` or `problem_statement`; `test_patch`; `tests`, or
/// `FAIL_TO_PASS` and `PASS_TO_PASS`; `guard`. Nothing is downloaded, and solutions are not read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  runner-eval import tasks.jsonl mine --guard 'make check'
  runner-eval import swe-bench.jsonl swe --repos ~/clones --guard 'python -m compileall -q .' --test 'python -m pytest -q {tests}'
  runner-eval --cases mine run --all")]
pub(crate) struct ImportArgs {
    /// File with the list
    #[arg(value_name = "LIST")]
    pub(crate) list: PathBuf,
    /// Directory for the cases
    #[arg(value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// Directory of clones, if `repo` is not a path: `owner/name`, `owner__name` or `name` in it
    #[arg(long, value_name = "DIR")]
    pub(crate) repos: Option<PathBuf>,
    /// Shell command with the checks that agents may know, if a task has none
    #[arg(long, value_name = "LINE")]
    pub(crate) guard: Option<String>,
    /// Shell command that runs tests; {tests} is replaced by their names
    #[arg(long, value_name = "LINE")]
    pub(crate) test: Option<String>,
    /// Time limit for the tests of a case, in seconds
    #[arg(long, value_name = "N", default_value_t = 1800, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(crate) seconds: u32,
}

/// Report the results of runs
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  runner-eval report                       every case
  runner-eval report calculator-go --by model
  runner-eval report --pass-at 3 --by label
  runner-eval report --html report.html")]
pub(crate) struct ReportArgs {
    /// Ids of cases [default: all cases with results]
    #[arg(value_name = "CASE")]
    pub(crate) cases: Vec<String>,
    /// One row per case and value of this key
    #[arg(long, value_name = "KEY")]
    pub(crate) by: Option<crate::report::GroupBy>,
    /// Probability that at least one of K runs has the expected outcome (pass@k)
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) pass_at: Option<u64>,
    /// Only results in this set, written as for `compare`
    #[arg(long, value_name = "SET")]
    pub(crate) only: Option<String>,
    /// Also write a page with plots
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// Compare two sets of runs
///
/// A set is a label, or `key=value` joined by commas. Keys: label, case, executor, model, agent, version, prompts, templates, runnerd.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  runner-eval compare old new
  runner-eval compare model=sonnet model=opus
  runner-eval compare executor=codex,label=x executor=claude,label=x --html compare.html
  runner-eval compare main branch --fail-under -5pp    exit code 9 if it is worse by more")]
pub(crate) struct CompareArgs {
    /// The first set
    pub(crate) a: String,
    /// The second set
    pub(crate) b: String,
    /// Exit with 9 if the second set succeeds less often than the first by more than this, over all cases: `-5pp`
    #[arg(long, value_name = "POINTS", allow_hyphen_values = true, value_parser = points)]
    pub(crate) fail_under: Option<f64>,
    /// Also write a page with plots
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// Try prompt templates on inputs: each pair through one real session
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  runner-eval prompts planner --executor codex
  runner-eval prompts worker --templates try/a.md try/b.md --inputs try/inputs --html grid.html
  runner-eval prompts reviewer --templates built-in try/reviewer.md --executor claude")]
pub(crate) struct PromptsArgs {
    /// Role to try
    pub(crate) role: crate::prompts::LabRole,
    /// Template files; `built-in` is the runner's own [default: built-in]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) templates: Vec<String>,
    /// Directory of inputs [default: `prompts` next to the directory of the cases]
    #[arg(long, value_name = "DIR")]
    pub(crate) inputs: Option<PathBuf>,
    /// Kind of the agent
    #[arg(long, value_name = "KIND", default_value = "codex", conflicts_with = "command")]
    pub(crate) executor: String,
    /// Program to use instead of an agent; it follows the contract of the kind `command`
    #[arg(long, value_name = "ARGV", num_args = 1.., allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
    /// Its model
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Number of sessions at the same time
    #[arg(short, long, value_name = "J", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) jobs: u16,
    /// Run again even if an answer is stored
    #[arg(long)]
    pub(crate) force: bool,
    /// Also write the grid as a page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err(format!("`{text}` is no amount in dollars, as 2.50 is")),
    }
}

/// Parses a difference in percentage points.
fn points(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("pp").unwrap_or(text);
    match number.parse::<f64>() {
        Ok(points) if (-100.0..=100.0).contains(&points) => Ok(points),
        _ => Err(format!("`{text}` is not a difference in percentage points between -100 and 100, such as -5pp")),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// Splits a line into words; single quotes group words.
    fn shell_words(line: &str) -> Vec<String> {
        let quoted = line.split('\'').enumerate();
        let words = quoted.flat_map(|(at, part)| match at % 2 {
            1 => vec![part.to_owned()],
            _ => part.split_whitespace().map(str::to_owned).collect(),
        });
        words.collect()
    }

    #[test]
    fn the_command_line_is_consistent_and_its_examples_can_be_typed() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        for below in command.get_subcommands() {
            let examples = below.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in examples.lines().filter_map(|line| line.trim().strip_prefix("runner-eval ")) {
                let typed = line.split("   ").next().unwrap_or(line);
                let words = shell_words(&format!("runner-eval {typed}"));
                let parsed = Cli::try_parse_from(words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.expect_err("an error"));
            }
        }
    }
}
