//! `docs/json.md`, generated: the output of each command with `--json`, from the schemas of the types.
//!
//! The table of which command prints which type is written here.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

const HEAD: &str = r#"# The JSON of every command

<!-- Generated: `UPDATE_GENERATED=1 cargo test -p runner-protocol --test reference` rewrites this page. -->

With `--json` a command prints only one object, on one line, to standard output; a command that follows changes prints one object per
line. The field `schema` names the format: `runner/status.v1`. Within a version, fields may be added, but are never removed or given
another meaning, so ignore unknown fields. The types are described in full in
[`schemas/rpc.v1.schema.json`](../schemas/rpc.v1.schema.json) and, with examples, in [protocol.md](protocol.md).

Errors are objects on standard error; the exit code shows the kind of error (`runnerctl help exit-codes`):

```json
{"error": {"kind": "wrong_state", "message": "…", "hint": "…", "causes": []}}
```

`kind` is for programs ([all kinds](protocol.md#errors)), `message` for people; `hint` is the command to type next, or null.

Times are RFC 3339 in UTC, durations whole milliseconds (`_ms`), money whole millionths of a US dollar (`_micro_usd`). Unknown values are null, never 0.
"#;

/// A command, and its output.
struct Command {
    /// As typed, without `runnerctl` and `--json`.
    typed: &'static str,
    /// The format, without `runner/` and the version.
    form: &'static str,
    prints: Prints,
    /// Example filters for `jq`, and their output.
    jq: &'static [(&'static str, &'static str)],
}

/// The fields of an answer.
enum Prints {
    /// Those of this type.
    Type(&'static str),
    /// One field, a list of this type.
    List(&'static str, &'static str),
    /// The fields named here.
    Fields(&'static [(&'static str, &'static str)]),
}

use Prints::{Fields, List, Type};

const COMMANDS: &[Command] = &[
    Command {
        typed: "status",
        form: "status",
        prints: Type("StatusView"),
        jq: &[
            (".run.summary.state", "the state"),
            (".run.summary.reason.command // empty", "the command to type next"),
            ("(.run.usage.cost_micro_usd // 0) / 1e6", "dollars so far, if known"),
        ],
    },
    Command {
        typed: "status --all",
        form: "statuses",
        prints: List("repos", "StatusView"),
        jq: &[(
            ".repos[] | select(.run.summary.state == \"held\" or .run.summary.state == \"stuck\") | .repo.path",
            "repositories that need your attention",
        )],
    },
    Command {
        typed: "status --all-hosts",
        form: "statuses-of-hosts",
        prints: Fields(&[(
            "hosts",
            "Each machine: its `host`, and either the `repos` of `status --all` or the `error` of a command that failed.",
        )]),
        jq: &[(".hosts[] | select(.error) | [.host, .error.message] | @tsv", "machines that did not answer")],
    },
    Command {
        typed: "questions --all-hosts",
        form: "questions-of-hosts",
        prints: Fields(&[("hosts", "Each machine: its `host`, and either its `questions` or an `error`.")]),
        jq: &[(
            ".hosts[] | .host as $host | .questions[]? | [$host, .id, .text] | @tsv",
            "the questions, and their machines",
        )],
    },
    Command {
        typed: "status --remote REMOTE",
        form: "branches",
        prints: List("runs", "BranchView"),
        jq: &[(
            ".runs[] | select(.state != \"completed\") | [.run, .state, .driver // \"\", .moved_at] | @tsv",
            "runs that are not complete, and their drivers",
        )],
    },
    Command {
        typed: "queue",
        form: "queue",
        prints: List("runs", "RunSummary"),
        jq: &[(".runs[] | [.id, .state] | @tsv", "id and state of each run")],
    },
    Command { typed: "repos", form: "repos", prints: List("repos", "RepoView"), jq: &[] },
    Command {
        typed: "log",
        form: "iterations",
        prints: List("iterations", "IterationView"),
        jq: &[
            (
                ".iterations[] | [.iter, .node, .verdict, .title // \"\", .summary // \"\"] | @tsv",
                "the iterations as a table",
            ),
            ("[.iterations[].usage.cost_micro_usd // 0] | add / 1e6", "their total cost, in dollars"),
        ],
    },
    Command {
        typed: "log 3",
        form: "iteration",
        prints: Type("IterationReply"),
        jq: &[(".record", "the directory of the record")],
    },
    Command { typed: "log 3 --guard", form: "log", prints: Type("TextView"), jq: &[(".text", "the text")] },
    Command {
        typed: "tree",
        form: "tree",
        prints: Type("TreeReply"),
        jq: &[(
            "[.tree.root | recurse(.children[]?) | select((.children // []) == [] and .passes == false)] | length",
            "number of open leaves",
        )],
    },
    Command { typed: "select", form: "select", prints: Type("SelectView"), jq: &[(".node.id", "the next leaf")] },
    Command { typed: "explain", form: "explain", prints: Type("ExplainReply"), jq: &[] },
    Command {
        typed: "questions",
        form: "questions",
        prints: List("questions", "QuestionView"),
        jq: &[(".questions[] | [.id, .text] | @tsv", "id and text of each question")],
    },
    Command {
        typed: "verify",
        form: "verify",
        prints: Type("AuditReport"),
        jq: &[(".findings[] | [.severity, .rule, .commit] | @tsv", "the findings")],
    },
    Command {
        typed: "verify --landed BRANCH",
        form: "verify-landed",
        prints: Type("LandedReport"),
        jq: &[(
            ".commits[] | select(.state == \"differs\") | .landed.commit",
            "landed commits that differ from the repeated merge",
        )],
    },
    Command {
        typed: "bisect -- COMMAND…",
        form: "bisect",
        prints: Fields(&[
            ("run", "Id of the run."),
            (
                "broken_by",
                "The states that may have broken it, oldest first, each a `BisectPoint`: several if the search cannot distinguish them.",
            ),
            ("points", "Number of states."),
            ("tried", "The commits on which the command was run, in order: `commit`, `exit`, `elapsed_ms`."),
            ("output", "The end of its output at the last of `broken_by`; null if it was not run there."),
        ]),
        jq: &[(".broken_by[] | [.commit, .iter, .node] | @tsv", "what broke it")],
    },
    Command {
        typed: "land RUN…",
        form: "land",
        prints: Type("LandReply"),
        jq: &[(".runs[] | [.run, .outcome] | @tsv", "the outcome of each run")],
    },
    Command {
        typed: "deliver RUN",
        form: "deliver",
        prints: Fields(&[
            ("run", "Id of the run."),
            ("branch", "The branch that was pushed: `deliver/<run>`."),
            ("remote", "Name of the remote."),
            ("base", "The branch to merge it into."),
            ("commits", "The new commits; with `--dry-run`, those that would be made."),
            ("commit", "The branch's new commit at the remote; null with `--dry-run`."),
            ("pushed", "Whether this command pushed it."),
            ("action", "`opened`, `updated`, `by_hand`, `merged`, `landed`; `preview` with `--dry-run`."),
            ("url", "The page of the request, or the page to open it on by hand; null if unknown."),
            ("title", "Title of the request."),
            ("body", "The description, as Markdown."),
            ("notes", "Other notices, in sentences."),
        ]),
        jq: &[(".url // empty", "the page of the request")],
    },
    Command {
        typed: "submit --to ENGINE --run ID…",
        form: "submit",
        prints: Fields(&[
            ("run", "Id of the run; each run has a separate object."),
            ("remote", "The address of the remote that the job gets."),
            ("engine", "`slurm`, `kubernetes`, `command`."),
            ("name", "The name of the job."),
            ("job", "The engine's id for the job; null with `--print`, or if your own program prints none."),
            ("script", "The script for the engine; only with `--print`."),
        ]),
        jq: &[("[.run, .job] | @tsv", "the job of each run")],
    },
    Command {
        typed: "deliver RUN --feedback",
        form: "feedback",
        prints: Type("FeedbackReply"),
        jq: &[(".text", "the text for the sessions")],
    },
    Command { typed: "land RUN --resolve", form: "start", prints: Type("StartReply"), jq: &[] },
    Command {
        typed: "validate",
        form: "validate",
        prints: Type("ValidateReply"),
        jq: &[(".checks[] | select(.faults != []) | .name", "the checks that failed")],
    },
    Command { typed: "init", form: "init", prints: Type("InitReply"), jq: &[] },
    Command {
        typed: "start",
        form: "start",
        prints: Type("StartReply"),
        jq: &[(".run.branch", "the branch of the run")],
    },
    Command { typed: "fork --from 7", form: "fork", prints: Type("StartReply"), jq: &[] },
    Command { typed: "step", form: "step", prints: Type("StepReply"), jq: &[] },
    Command { typed: "pause", form: "pause", prints: Type("ControlReply"), jq: &[] },
    Command { typed: "resume", form: "resume", prints: Type("ControlReply"), jq: &[] },
    Command { typed: "cancel", form: "cancel", prints: Type("ControlReply"), jq: &[] },
    Command { typed: "note TEXT", form: "note", prints: Type("ChangeReply"), jq: &[] },
    Command { typed: "answer ID TEXT", form: "answer", prints: Type("ChangeReply"), jq: &[] },
    Command { typed: "retry TASK", form: "retry", prints: Type("ChangeReply"), jq: &[] },
    Command { typed: "add TASK …", form: "add", prints: Type("ChangeReply"), jq: &[] },
    Command { typed: "edit --file FILE", form: "edit", prints: Type("ChangeReply"), jq: &[] },
    Command { typed: "guard accept", form: "guard-accept", prints: Type("ChangeReply"), jq: &[] },
    Command { typed: "approve", form: "review", prints: Type("ReviewReply"), jq: &[] },
    Command { typed: "reject REASON", form: "review", prints: Type("ReviewReply"), jq: &[] },
    Command { typed: "config get [KEY]", form: "config", prints: Type("ConfigReply"), jq: &[(".value", "the value")] },
    Command { typed: "config set KEY VALUE", form: "config-set", prints: Type("ConfigSetReply"), jq: &[] },
    Command {
        typed: "config show",
        form: "config-show",
        prints: Type("ConfigShowReply"),
        jq: &[(".settings[] | select(.origin != \"default\") | .key", "the keys that are set")],
    },
    Command { typed: "config path", form: "config-path", prints: Type("ConfigPathReply"), jq: &[] },
    Command { typed: "gc", form: "gc", prints: Type("GcReply"), jq: &[] },
    Command {
        typed: "export ITER|RUN DIR",
        form: "export",
        prints: Fields(&[
            ("run", "id of the run"),
            ("to", "the directory"),
            ("records", "copied records"),
            ("files", "files in them"),
            ("bytes", "their size"),
            ("skipped", "paths that are not regular files"),
        ]),
        jq: &[],
    },
    Command {
        typed: "export html RUN FILE",
        form: "export-html",
        prints: Fields(&[
            ("run", "id of the run"),
            ("to", "the file"),
            ("bytes", "its size"),
            ("iterations", "iterations of the run"),
            ("shortened", "texts that are only partly in the file: `iter`, `text`, `bytes`, `kept`"),
            ("without_texts", "iterations whose texts are left out"),
            ("cuts", "the parts that are left out, in sentences"),
        ]),
        jq: &[(".cuts[]", "what is left out")],
    },
    Command {
        typed: "export otlp URL [RUN]",
        form: "export-otlp",
        prints: Fields(&[
            ("to", "the address that received the traces"),
            ("iterations", "exported iterations"),
            ("spans", "their spans"),
            ("rejected", "spans that the collector rejected"),
        ]),
        jq: &[],
    },
    Command { typed: "daemon signing-key", form: "signing-key", prints: Type("SigningKeyReply"), jq: &[] },
    Command {
        typed: "daemon status",
        form: "daemon",
        prints: Type("DaemonView"),
        jq: &[(".version", "the version of the daemon that runs")],
    },
    Command {
        typed: "doctor",
        form: "doctor",
        prints: Fields(&[
            ("machine", "checks of machine and daemon: `name`, `level` (`ok`, `warn`, `fail`, `skip`), `found`, `fix`"),
            ("repository", "checks of the repository, in the same format"),
        ]),
        jq: &[("(.machine + .repository)[] | select(.level == \"fail\") | .fix", "what to do about each error")],
    },
    Command {
        typed: "help states",
        form: "states",
        prints: Fields(&[("states", "each state: `state`, `meaning`, `next`")]),
        jq: &[],
    },
    Command {
        typed: "help exit-codes",
        form: "exit_codes",
        prints: Fields(&[("exit_codes", "each exit code: `code`, `meaning`, `next`")]),
        jq: &[],
    },
];

/// Returns the whole page.
pub(crate) fn text() -> String {
    let schema = schema();
    let mut page = HEAD.to_owned();
    for command in COMMANDS {
        let form = command.form;
        let _ = write!(page, "\n## `runnerctl {} --json`\n\n`runner/{form}.v1`", command.typed);
        let body = match command.prints {
            Type(name) => format!(", the fields of `{name}`: {}\n\n{}", about(&schema, name), fields(&schema, name)),
            List(field, name) => {
                let head = format!(", a list `{field}` of `{name}`: {}", about(&schema, name));
                format!("{head}\n\n{}", fields(&schema, name))
            }
            Fields(all) => {
                let rows = all.iter().map(|(name, meaning)| ((*name).to_owned(), (*meaning).to_owned()));
                format!("\n\n{}", table(rows))
            }
        };
        page += &body;
        if !command.jq.is_empty() {
            page += "\n```sh\n";
            for (filter, meaning) in command.jq {
                let _ = writeln!(page, "runnerctl {} --json | jq -r '{filter}'    # {meaning}", command.typed);
            }
            page += "```\n";
        }
    }
    page + "\nWith `--wait`, and with `--watch`, `-f` and the like, an object follows for each change: `runner/event.v1` is described by \
            [`schemas/event.v1.schema.json`](../schemas/event.v1.schema.json).\n"
}

fn schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas/rpc.v1.schema.json");
    let text = std::fs::read_to_string(path).expect("the schema can be read");
    serde_json::from_str(&text).expect("the schema is JSON")
}

fn definition<'s>(schema: &'s Value, name: &str) -> &'s Value {
    schema["$defs"].get(name).unwrap_or_else(|| panic!("there is no type {name}"))
}

fn about(schema: &Value, name: &str) -> String {
    line(definition(schema, name)["description"].as_str().unwrap_or_default())
}

/// Returns a table of a type's fields; for a type with several variants, the fields of all.
fn fields(schema: &Value, name: &str) -> String {
    let definition = definition(schema, name);
    let shapes = definition["oneOf"].as_array().map_or_else(|| vec![definition], |shapes| shapes.iter().collect());
    let mut rows: Vec<(String, String)> = Vec::new();
    for (name, field) in shapes.iter().filter_map(|shape| shape["properties"].as_object()).flatten() {
        let text = field["description"].as_str().map(line).or_else(|| Some(field["const"].as_str()?.to_owned()));
        match rows.iter_mut().find(|(known, _)| known == name) {
            Some((_, all)) if field["const"].is_string() => {
                all.push_str(", ");
                all.push_str(&text.unwrap_or_default());
            }
            Some(_) => {}
            None => rows.push((name.clone(), text.unwrap_or_default())),
        }
    }
    assert!(!rows.is_empty(), "{name} has no fields");
    table(rows.into_iter())
}

fn table(rows: impl Iterator<Item = (String, String)>) -> String {
    let head = "| field | is |\n|---|---|\n".to_owned();
    rows.fold(head, |mut text, (name, meaning)| {
        let _ = writeln!(text, "| `{name}` | {} |", meaning.replace('|', "\\|"));
        text
    })
}

fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks the first path of each `jq` filter against the schema.
#[test]
fn fields_that_the_lines_for_jq_name_are_there() {
    let schema = schema();
    for command in COMMANDS {
        for (filter, _) in command.jq {
            let path = filter.trim_start_matches(['(', '[']);
            let end = path.find(|c: char| !(c.is_ascii_alphanumeric() || "._[]".contains(c))).unwrap_or(path.len());
            let mut names =
                path[..end].split('.').map(|name| name.trim_end_matches(['[', ']'])).filter(|n| !n.is_empty());
            let mut at = match command.prints {
                Type(name) => definition(&schema, name),
                List(field, name) => {
                    assert_eq!(names.next(), Some(field), "{filter}");
                    definition(&schema, name)
                }
                Fields(all) => {
                    let first = names.next().unwrap_or_default();
                    assert!(all.iter().any(|(name, _)| *name == first), "{filter}: {first}");
                    continue;
                }
            };
            for name in names {
                at = field(&schema, at, name).unwrap_or_else(|| panic!("{filter}: there is no {name}"));
            }
        }
    }
}

/// Returns a field of a type, of one of its variants, or of the items of a list.
fn field<'s>(schema: &'s Value, at: &'s Value, name: &str) -> Option<&'s Value> {
    if let Some(reference) = at["$ref"].as_str() {
        return field(schema, definition(schema, reference.rsplit('/').next()?), name);
    }
    if let Some(found) = at["properties"].get(name) {
        return Some(found);
    }
    let shapes = ["anyOf", "oneOf"].iter().filter_map(|kind| at[kind].as_array()).flatten();
    shapes.chain(at.get("items")).find_map(|shape| field(schema, shape, name))
}
