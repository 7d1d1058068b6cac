//! Tests of the table of keys against the types, and of the messages shown to people.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use protocol::words::Containment;

use super::keys::{ConfigSection, KeyDefault, SectionDisplay, ValueKind};
use super::*;

const FILE: &str = "/repo/.runner/state/config.toml";

fn parse_config(text: &str) -> RepoConfig {
    parse(text, Path::new(FILE)).unwrap()
}

fn parse_refusal(text: &str) -> String {
    parse(text, Path::new(FILE)).unwrap_err().to_string()
}

#[test]
fn the_default_file_means_the_defaults() {
    assert_eq!(parse_config(&default_text()), RepoConfig::default());
    let daemon = DaemonConfig::parse(&daemon_default_text(), Path::new(FILE)).unwrap();
    assert_eq!(daemon, DaemonConfig::default());
}

#[test]
fn the_default_file_reads_well() {
    let text = default_text();
    let head: Vec<_> = text.lines().take(12).collect();
    insta::assert_snapshot!(head.join("\n"), @r#"
    # Configuration of this repository for runnerd. Every key is shown as a comment, with its default.
    # A session is run with the version of this file at the commit it starts from.
    # Change it with `runnerctl config set` or `runnerctl config edit`, or by hand and commit it.

    # Limits of a run.

    # Number of iterations after which a run stops.
    # max_iterations = 100

    # Attempts of a new task; the run is stuck when a task has used all of them.
    # max_attempts_default = 3
    "#);
    let set = set(&set(&text, "executor.model", "best").unwrap(), "max_iterations", "7").unwrap();
    assert!(set.contains("# Number of iterations after which a run stops.\nmax_iterations = 7\n"), "{set}");
    assert!(set.contains("agent chooses.\nmodel = \"best\"\n"), "{set}");
    assert_eq!(set.lines().count(), text.lines().count());
    let executor: Vec<_> = text.lines().skip_while(|line| !line.contains("[executor.plan]")).take(8).collect();
    insta::assert_snapshot!(executor.join("\n"), @r#"
    # [executor.plan]
    # model = "a-stronger-model"

    # Overrides for the reviewer: any key of [executor]. A different `kind` does not take over `model`, `effort`, `inherit` and `extra_args`.
    # [executor.review]
    # kind = "claude"

    # How work is divided between sessions.
    "#);
}

#[test]
fn the_defaults_are_those_of_the_specification() {
    let config = RepoConfig::default();
    assert_eq!(config.max_iterations, 100);
    assert_eq!(config.max_attempts_default, 3);
    assert_eq!(config.max_consecutive_faults, 3);
    assert_eq!(config.stall_after, 5);
    assert_eq!(config.iteration_timeout, Duration::from_mins(30));
    assert_eq!(config.on_timeout, TimeoutPolicy::Stop);
    assert_eq!((config.max_cost, config.max_tokens, config.max_run), (None, None, None));
    let work = &config.executor.work;
    assert_eq!(work.kind, ExecutorKind::Codex);
    assert_eq!(work.idle_timeout, Duration::from_mins(15));
    assert_eq!(work.output_limit_bytes, 1 << 20);
    assert_eq!(work.sandbox, Sandbox::WorkspaceWrite);
    assert!(work.network);
    assert_eq!(&config.executor.plan, work);
    assert_eq!(&config.executor.review, work);
    assert_eq!(config.roles.mode, RolesMode::Auto);
    assert_eq!(config.guard.command, ["just", "ci"]);
    assert_eq!(config.guard.output_limit_bytes, 1 << 20);
    assert_eq!(config.guard.on_change, ChangePolicy::Both);
    assert!(config.guard.baseline && config.guard.flakes);
    assert_eq!(config.review.by, ReviewPolicy::Off);
    assert_eq!(config.prompt.budget_bytes, 40960);
    assert_eq!(config.git.max_file_bytes, 50 << 20);
    assert!(!config.git.sign);
    assert_eq!((config.scope.write.as_slice(), config.scope.never.as_slice()), (&["**".to_owned()][..], &[][..]));
    assert_eq!(config.containment.require, Containment::Walk);
}

#[test]
fn names_that_may_be_secret_are_held_back_by_default() {
    let hold_back = RepoConfig::default().git.hold_back;
    for held in [".env", "app/.env", ".env.local", "tls/server.pem", "id_rsa", ".ssh/id_ed25519"] {
        assert!(hold_back.matches_path(held), "{held}");
    }
    for free in [".env.example", "a/.env.sample", ".env.template", "id_rsa.pub", "src/env.rs"] {
        assert!(!hold_back.matches_path(free), "{free}");
    }
}

#[test]
fn main_and_master_are_protected_whatever_the_file_says() {
    let git = parse_config("git.protected_branches = [\"release/*\"]").git;
    assert!(["main", "master", "release/2"].iter().all(|branch| git.protects(branch)));
    assert!(!git.protects("runner/x"));
}

/// Returns every dotted key of a value; the contents of one wildcard entry count as `*`.
fn collect_keys(value: &serde_json::Value, path: &str, keys: &mut BTreeSet<String>) {
    let serde_json::Value::Object(fields) = value else {
        keys.insert(path.to_owned());
        return;
    };
    for (name, inner) in fields {
        let name = if path == "prices" { "*" } else { name };
        let separator = if path.is_empty() { "" } else { "." };
        collect_keys(inner, &format!("{path}{separator}{name}"), keys);
    }
}

fn keys_in_table(sections: &[ConfigSection]) -> BTreeSet<String> {
    let keys = sections.iter().flat_map(|section| {
        let prefix = section.parts();
        section.keys.iter().map(move |key| [&prefix[..], &[key.name]].concat().join("."))
    });
    keys.collect()
}

#[test]
fn the_table_has_exactly_the_keys_of_the_types() {
    let config = parse_config("[prices.m]\ninput = 1\noutput = 2");
    let mut keys = BTreeSet::new();
    collect_keys(&serde_json::to_value(config).unwrap(), "", &mut keys);
    assert_eq!(keys, keys_in_table(table::REPOSITORY));

    let mut keys = BTreeSet::new();
    collect_keys(&serde_json::to_value(DaemonConfig::default()).unwrap(), "", &mut keys);
    assert_eq!(keys, keys_in_table(table::DAEMON));
}

#[test]
fn every_example_in_the_default_files_is_valid() {
    let uncommented = |section: &ConfigSection| {
        let header = match section.parts().join(".").replace('*', "model") {
            path if path.is_empty() => String::new(),
            path => format!("[{path}]\n"),
        };
        let lines: Vec<_> = match section.shown {
            SectionDisplay::Override(lines) | SectionDisplay::Entry(lines) => {
                lines.iter().map(|line| (*line).to_owned()).collect()
            }
            SectionDisplay::Full => {
                let off = section.keys.iter().filter_map(|key| match key.default {
                    KeyDefault::Example(toml) => Some(format!("{} = {toml}", key.name)),
                    KeyDefault::Toml(_) | KeyDefault::Required => None,
                });
                off.collect()
            }
        };
        header + &lines.join("\n")
    };
    for section in table::REPOSITORY {
        parse_config(&uncommented(section));
    }
    for section in table::DAEMON {
        DaemonConfig::parse(&uncommented(section), Path::new(FILE)).unwrap();
    }
}

#[test]
fn every_listed_choice_is_one_of_the_type() {
    let agent = "executor.command = [\"agent\"]";
    for section in table::REPOSITORY.iter().filter(|section| section.shown == SectionDisplay::Full) {
        for key in section.keys {
            let name = keys::dotted_key(&section.parts(), key.name);
            if let ValueKind::Choice(words) = key.kind {
                for word in words {
                    parse_config(&format!("{agent}\n{name} = \"{word}\""));
                }
            }
        }
    }
    for word in LogLevel::SPELLINGS {
        DaemonConfig::parse(&format!("log_level = \"{word}\""), Path::new(FILE)).unwrap();
    }
}

#[test]
fn a_configuration_survives_being_written_and_read() {
    let config = parse_config(
        "max_cost_usd = 2.5\nmax_run_secs = 60\n[executor]\nmodel = \"m\"\n\
         [executor.plan]\nkind = \"claude\"\n[prices.m]\ninput = 1\noutput = 2\n",
    );
    assert_eq!(parse_config(&toml::to_string(&config).unwrap()), config);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test compares and rewrites a file")]
fn the_reference_page_is_current() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(&page, reference_page()).unwrap();
    }
    let on_disk = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(on_disk == reference_page(), "docs/configuration.md is stale: UPDATE_GENERATED=1 rewrites it");
}

#[test]
fn an_override_changes_only_what_it_names() {
    let executors =
        parse_config("[executor]\nmodel = \"m\"\nextra_args = [\"-x\"]\n[executor.plan]\nmodel = \"big\"\n").executor;
    assert_eq!(executors.plan.model.as_deref(), Some("big"));
    assert_eq!(executors.plan.extra_args, ["-x"]);
    assert_eq!(executors.review, executors.work);
}

#[test]
fn another_kind_does_not_inherit_model_and_arguments() {
    let executors = parse_config(
        "[executor]\nmodel = \"m\"\neffort = \"low\"\nextra_args = [\"-x\"]\nwrapper = [\"bwrap\"]\n\
         [executor.review]\nkind = \"claude\"\n[executor.plan]\nkind = \"gemini\"\n",
    )
    .executor;
    assert_eq!(executors.review.kind, ExecutorKind::Claude);
    assert_eq!((&executors.review.model, executors.review.effort, executors.plan.effort), (&None, None, None));
    assert_eq!(
        (executors.work.effort, executors.work.for_fallback(ExecutorKind::Gemini).effort),
        (Some(Effort::Low), None)
    );
    assert!(executors.review.extra_args.is_empty());
    assert_eq!(executors.review.wrapper, ["bwrap"]);
}

const WRONG_TEXTS: &[&str] = &[
    "a = ",
    "max_iteration = 5",
    "\n[guard]\n  comand = [\"true\"]",
    "command = [\"true\"]",
    "[gaurd]\n",
    "[executor.paln]\n",
    "guard = 1",
    "[[guard]]\n",
    "max_iterations = 0",
    "max_iterations = \"many\"",
    "max_attempts_default = 0",
    "iteration_timeout_secs = 0",
    "max_iterations = 99999999999999999999999",
    "[executor]\nkind = \"claud\"",
    "[executor]\nkind = 3",
    "[executor]\noutput_limit_bytes = 4095",
    "[executor]\nmodel = \"\"",
    "[executor]\nfallback = [\"bash\"]",
    "[guard]\ncommand = []",
    "[guard]\ncommand = [\"\"]",
    "[guard]\ncommand = \"just ci\"",
    "[guard]\ncommand = [\"a\", 1]",
    "[guard]\ncommand = [\"a\\u0000\"]",
    "[prompt]\nbudget_bytes = 32767",
    "[git]\nsign = \"yes\"",
    "max_cost_usd = -1",
    "max_cost_usd = nan",
    "[prices.\"gpt 5\"]\ninput = 1",
    "[executor]\nkind = \"command\"",
    "[executor.plan]\nkind = \"command\"",
    "[executor]\nfallback = [\"command\"]",
    "[executor]\neffort = \"most\"",
    "[executor]\nkind = \"gemini\"\neffort = \"low\"",
    "[executor]\neffort = \"low\"\n[executor.plan]\nkind = \"opencode\"\neffort = \"low\"",
    "max_iterations = 1\nmax_iterations = 2",
    "# é\nx\u{e9} = 1",
];

#[test]
fn messages_point_at_the_fault() {
    let messages: Vec<_> = WRONG_TEXTS.iter().map(|text| parse_refusal(text)).collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"
    /repo/.runner/state/config.toml:1:5: invalid TOML: string values must be quoted, expected literal string
    /repo/.runner/state/config.toml:1:1: unknown key `max_iteration` at the top level; did you mean `max_iterations`?
    /repo/.runner/state/config.toml:3:3: unknown key `comand` in [guard]; did you mean `command`?
    /repo/.runner/state/config.toml:1:1: unknown key `command` at the top level; did you mean `executor.command` or `guard.command` or `deliver.command`?
    /repo/.runner/state/config.toml:1:2: unknown key `gaurd` at the top level; did you mean `guard`?
    /repo/.runner/state/config.toml:1:11: unknown key `paln` in [executor]; did you mean `plan`?
    /repo/.runner/state/config.toml:1:1: `guard` is a section and cannot be given a value
    /repo/.runner/state/config.toml:1:3: `guard` is a section and cannot be given a value
    /repo/.runner/state/config.toml:1:18: `max_iterations` must be a whole number from 1 to 1000000, not 0
    /repo/.runner/state/config.toml:1:18: `max_iterations` must be a whole number from 1 to 1000000, not "many"
    /repo/.runner/state/config.toml:1:24: `max_attempts_default` must be a whole number from 1 to 1000000, not 0
    /repo/.runner/state/config.toml:1:26: `iteration_timeout_secs` must be a whole number from 1 to 31536000, not 0
    /repo/.runner/state/config.toml:1:18: `max_iterations` must be a whole number from 1 to 1000000, not 99999999999999999999999
    /repo/.runner/state/config.toml:2:8: `executor.kind` must be one of "codex", "claude", "opencode", "gemini", "command", not "claud"; did you mean `claude`?
    /repo/.runner/state/config.toml:2:8: `executor.kind` must be one of "codex", "claude", "opencode", "gemini", "command", not 3
    /repo/.runner/state/config.toml:2:22: `executor.output_limit_bytes` must be a whole number from 4096 to 1073741824, not 4095
    /repo/.runner/state/config.toml:2:9: `executor.model` must be a string that is not empty, not ""
    /repo/.runner/state/config.toml:2:12: `executor.fallback` must be a list of "codex", "claude", "opencode", "gemini", "command", not ["bash"]
    /repo/.runner/state/config.toml:2:11: `guard.command` must be a program and its arguments as a list of strings, not an empty list
    /repo/.runner/state/config.toml:2:11: `guard.command` must be a program and its arguments as a list of strings, not [""]
    /repo/.runner/state/config.toml:2:11: `guard.command` must be a program and its arguments as a list of strings, not "just ci"
    /repo/.runner/state/config.toml:2:11: `guard.command` must be a program and its arguments as a list of strings, not ["a", 1]
    /repo/.runner/state/config.toml:2:11: `guard.command` must be a program and its arguments as a list of strings, not ["a\0"]
    /repo/.runner/state/config.toml:2:16: `prompt.budget_bytes` must be a whole number from 32768 to 1048576, not 32767
    /repo/.runner/state/config.toml:2:8: `git.sign` must be true or false, not "yes"
    /repo/.runner/state/config.toml:1:16: `max_cost_usd` must be an amount of dollars, 0 or more, not -1
    /repo/.runner/state/config.toml:1:16: `max_cost_usd` must be an amount of dollars, 0 or more, not nan
    /repo/.runner/state/config.toml:1:9: `prices."gpt 5".output` is missing
    /repo/.runner/state/config.toml:2:8: `executor.kind` names "command", which needs `executor.command`
    /repo/.runner/state/config.toml:2:8: `executor.plan.kind` names "command", which needs `executor.command`
    /repo/.runner/state/config.toml:2:12: `executor.fallback` names "command", which needs `executor.command`
    /repo/.runner/state/config.toml:2:10: `executor.effort` must be one of "low", "medium", "high", not "most"
    /repo/.runner/state/config.toml:3:10: `executor.effort` is not for the kind "gemini", which has no such setting
    /repo/.runner/state/config.toml:5:10: `executor.plan.effort` is not for the kind "opencode", which has no such setting
    /repo/.runner/state/config.toml:2:1: invalid TOML: duplicate key
    /repo/.runner/state/config.toml:2:2: invalid TOML: invalid unquoted key, expected letters, numbers, `-`, `_`
    "#);
}

#[test]
fn the_first_of_several_faults_is_named() {
    let text = "zzz = 1\nmax_iterations = 0\n[aaa]\n";
    assert!(parse_refusal(text).contains(":1:1: unknown key `zzz`"), "{}", parse_refusal(text));
}

#[test]
fn an_oversized_file_is_refused_unread() {
    let text = "#".repeat((256 << 10) + 1);
    assert!(parse_refusal(&text).contains("the file has 262145 bytes"));
}

#[test]
fn a_cost_ceiling_needs_a_price_for_every_agent_that_may_run() {
    let check = |text: &str| {
        let text = format!("max_cost_usd = 5\n{text}");
        parse_config(&text).check_cost_limit().map_err(|refusal| (refusal.section, refusal.price_name))
    };
    let price = "[prices.m]\ninput = 1\noutput = 2\n";
    let refused = |section, name: &str| Err((section, name.to_owned()));
    assert_eq!(RepoConfig::default().check_cost_limit(), Ok(()));
    assert_eq!(check(""), Ok(()), "its own record names the model");
    assert_eq!(check("executor.model = \"gpt-5.5\""), Ok(()), "it is listed");
    assert_eq!(check("executor.model = \"m\""), refused("executor", "m"));
    assert_eq!(check("executor.kind = \"gemini\""), refused("executor", "gemini"));
    assert_eq!(check(&format!("executor.model = \"m\"\n{price}")), Ok(()));
    assert_eq!(check("executor.kind = \"claude\""), Ok(()));
    let fallback = "executor.kind = \"claude\"\nexecutor.fallback = [\"gemini\"]";
    assert_eq!(check(fallback), refused("executor", "gemini"));
    let other = "[executor]\nkind = \"claude\"\n[executor.review]\nkind = \"gemini\"\n";
    assert_eq!(check(other), Ok(()));
    let with_review = format!("{other}[review]\nby = \"agent\"");
    assert_eq!(check(&with_review), refused("executor.review", "gemini"));
}

#[test]
fn a_run_with_a_cost_ceiling_begins_only_if_its_models_are_named() {
    let check = |text: &str| parse_config(text).check_named_models().map_err(|refusal| refusal.to_string());
    assert_eq!(check(""), Ok(()), "there is no ceiling");
    insta::assert_snapshot!(check("max_cost_usd = 5").unwrap_err(), @"`max_cost_usd` is set, but `codex` (in [executor]) chooses its model itself, and no price is known before its first session; name a model: runnerctl config set executor.model gpt-6.1-sol");
    assert_eq!(check("max_cost_usd = 5\nexecutor.model = \"gpt-5.5\""), Ok(()));
    assert_eq!(check("max_cost_usd = 5\nexecutor.kind = \"claude\""), Ok(()), "it reports its cost");
    assert_eq!(check("max_cost_usd = 5\n[prices.codex]\ninput = 1\noutput = 2"), Ok(()));
}

#[test]
fn a_price_is_the_files_else_the_list_price_of_the_model_that_is_named_or_was_reported() {
    let quote = |text: &str, reported: Option<&str>| {
        let config = parse_config(text);
        let quote = config.price_of(&config.executor.work, reported);
        quote.map(|quote| (matches!(quote, PriceQuote::Listed(_)), quote.price().output.dollars()))
    };
    let named = "executor.model = \"gpt-5.5\"\n";
    assert_eq!(quote(named, None), Some((true, 30.0)));
    assert_eq!(quote(named, Some("gpt-6-astra")), Some((true, 30.0)), "what is named counts");
    assert_eq!(quote(&format!("{named}[prices.\"gpt-5.5\"]\ninput = 1\noutput = 2"), None), Some((false, 2.0)));
    assert_eq!(quote("", Some("gpt-6-astra")), Some((true, 50.0)));
    assert_eq!(quote("", Some("gpt-9")), None, "what is not listed is not known");
    assert_eq!(quote("", None), None);
    assert_eq!(quote("[prices.codex]\ninput = 1\noutput = 3", Some("gpt-6-astra")), Some((false, 3.0)));
    assert_eq!(quote("[prices.gpt-9]\ninput = 1\noutput = 4", Some("gpt-9")), Some((false, 4.0)));
    let listed = |text: &str| parse_config(text).listed_prices().into_keys().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!((listed(named), listed("")), (vec!["gpt-5.5".to_owned()], vec![]));
    let name = Some("list price, 2026-11".to_owned());
    assert_eq!((parse_config(named).list_price_note(), parse_config("").list_price_note()), (name.clone(), name));
    assert_eq!(parse_config("executor.kind = \"claude\"").list_price_note(), None);
}

#[test]
fn the_refusal_of_a_ceiling_says_what_to_add() {
    let refusal = parse_config("max_cost_usd = 5\nexecutor.kind = \"gemini\"").check_cost_limit().unwrap_err();
    insta::assert_snapshot!(refusal, @r#"`max_cost_usd` is set, but `gemini` (in [executor]), which reports no cost, has no price; state it in dollars per million tokens: runnerctl config set prices.gemini '{input = IN, output = OUT}', or: runnerctl config set max_cost_usd --default"#);
}

#[test]
fn the_refusal_of_a_ceiling_names_the_model_without_a_price() {
    let text = "max_cost_usd = 5\nexecutor.kind = \"codex\"\nexecutor.model = \"gpt-9\"";
    let refusal = parse_config(text).check_cost_limit().unwrap_err().to_string();
    assert!(refusal.contains("the model `gpt-9` of `codex` (in [executor]) has no price"), "{refusal}");
    assert!(refusal.contains("runnerctl config set prices.gpt-9 "), "{refusal}");
}

#[test]
fn commands_are_listed_with_their_keys() {
    let config = parse_config(
        "[executor]\nkind = \"command\"\ncommand = [\"agent\", \"-q\"]\nwrapper = [\"bwrap\", \"--\"]\n\
         fallback = [\"claude\"]\n[hooks]\non_stuck = [\"notify-send\", \"stuck\"]\n",
    );
    let commands: Vec<_> =
        config.commands().into_iter().map(|(label, argv)| format!("{label}: {}", argv.join(" "))).collect();
    insta::assert_snapshot!(commands.join("\n"), @r#"
    executor: bwrap -- agent -q
    executor.fallback: bwrap -- claude
    guard.command: just ci
    hooks.on_stuck: notify-send stuck
    "#);
}

#[test]
fn what_can_match_nothing_is_refused_with_its_place() {
    let wrong = [
        ("git.hold_back", &["secrets/*.pem", "/.env", "!", "", "!a/b", ".."][..], "without directories"),
        (
            "guard.definition",
            &["../ci.sh", "/", "a//b", "checks/", "./ci.sh", "/a/../../b", "!"],
            "within the repository",
        ),
        ("git.protected_branches", &["refs/heads/main", "a b", "/main", "release/", "!"], "names of branches"),
        ("env.agent", &["A=B", "MY VAR", "a/b", "!"], "without their values"),
        ("env.guard", &["A=B"], "without their values"),
        ("scope.write", &["!src", "", "/", "../src", "a//b", ".runner/state", "/.runner", "a\tb"], "outside .runner/"),
        ("scope.never", &["./src", "!"], "outside .runner/"),
    ];
    for (key, globs, expected) in wrong {
        for glob in globs {
            let refusal = parse_refusal(&format!("\n{key} = [\"x\", {glob:?}]"));
            let column = key.len() + 4;
            assert!(refusal.starts_with(&format!("{FILE}:2:{column}: `{key}` must be a list of ")), "{refusal}");
            assert!(refusal.contains(expected), "{refusal}");
        }
    }
    for empty in ["executor.model = \" \"", "guard.command = [\" \"]"] {
        assert!(parse_refusal(empty).starts_with(&format!("{FILE}:1:")), "{empty}");
    }
    parse_config(
        "git.hold_back = [\"a b.*\", \"!*.example\"]\nguard.definition = [\"/ci/**\", \"*.mk\", \"!docs/[a-z]*\"]",
    );
    parse_config("scope.write = [\"src/\", \"/docs/**\", \"*.md\"]\nscope.never = [\"migrations\"]");
    parse_config("git.protected_branches = [\"release/*\", \"**\"]\nenv.agent = [\"*\", \"!MY_*\"]");
}

#[test]
fn the_digest_follows_what_is_run_and_nothing_else() {
    let digest = |text: &str| parse_config(text).commands_digest();
    let default = digest("");
    assert_eq!(default.len(), 64);
    assert_eq!(default, digest("max_iterations = 7\nexecutor.model = \"m\""));
    for text in [
        "guard.command = [\"sh\"]",
        "executor.wrapper = [\"w\"]",
        "executor.extra_args = [\"-x\"]",
        "executor.kind = \"claude\"",
        "executor.plan.kind = \"claude\"",
        "hooks.on_stop = [\"x\"]",
        "env.guard = [\"SECRET\"]",
        "executor.sandbox = \"danger-full-access\"",
    ] {
        assert_ne!(default, digest(text), "{text}");
    }
}

#[test]
fn setting_a_key_keeps_the_comments() {
    let before = "# top\nmax_iterations = 5 # mine\n\n# the guard\n[guard]\nbaseline = false\n";
    let after = set(before, "max_iterations", "9").unwrap();
    let after = set(&after, "guard.command", "[\"sh\", \"-c\", \"true\"]").unwrap();
    insta::assert_snapshot!(set(&after, "executor.plan.kind", "claude").unwrap(), @r#"
    # top
    max_iterations = 9 # mine

    # the guard
    [guard]
    baseline = false
    command = ["sh", "-c", "true"]

    [executor.plan]
    kind = "claude"
    "#);
}

#[test]
fn the_words_of_a_command_are_taken_as_they_are() {
    let value = |given: &str| get(&set("", "guard.command", given).unwrap(), "guard.command").unwrap().value.unwrap();
    assert_eq!(value("cargo test --locked"), r#"["cargo", "test", "--locked"]"#);
    assert_eq!(value("make"), r#"["make"]"#);
    let refused = set("", "executor.model", r#"["gpt", "5"]"#).unwrap_err().to_string();
    assert!(refused.contains("`executor.model`"), "{refused}");
    assert_eq!(value(r#"["sh", "-c", "a && b"]"#), r#"["sh", "-c", "a && b"]"#);
}

#[test]
fn a_price_without_its_other_half_is_refused() {
    let error = set("", "prices.\"gpt-5.1\".input", "1.5").unwrap_err();
    assert!(error.to_string().contains("`prices.\"gpt-5.1\".output` is missing"), "{error}");
}

#[test]
fn a_price_is_set_at_once_and_its_models_name_needs_no_quotes() {
    let text = set("", "prices.gpt-5.1", "{input = 1.5, cached = 0.15, output = 6}").unwrap();
    assert_eq!(text, "[prices.\"gpt-5.1\"]\ninput = 1.5\ncached = 0.15\noutput = 6\n");
    let text = set(&text, "prices.gpt-5.1.output", "7").unwrap();
    assert_eq!(get(&text, "prices.\"gpt-5.1\".output").unwrap().value.as_deref(), Some("7"));
    let whole = get(&text, "prices.gpt-5.1").unwrap();
    assert_eq!((whole.key.as_str(), whole.origin), ("prices.\"gpt-5.1\"", ValueOrigin::File { line: 1 }));
    assert_eq!(whole.value.as_deref(), Some("{ cached = 0.15, input = 1.5, output = 7 }"));
    let refused = |key: &str, value: &str| set("", key, value).unwrap_err().to_string();
    let messages = [
        refused("prices.m", "{input = 1.5}"),
        refused("prices.m", "{input = 1.5, output = \"6\"}"),
        refused("prices.m", "{input = 1.5, outputs = 6}"),
        refused("prices.m", "1.5"),
        refused("prices", "{m = 1}"),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r#"
    `prices.m.output` is missing
    `prices.m.output` must be an amount of dollars, 0 or more, not "6"
    unknown key `outputs` in [prices.m]; did you mean `output`?
    `prices.m` is a section and cannot be given a value
    `prices` is a section and cannot be given a value
    "#);
}

#[test]
fn every_default_can_be_set_in_the_default_file() {
    for section in table::REPOSITORY.iter().filter(|section| section.shown == SectionDisplay::Full) {
        for key in section.keys {
            if let KeyDefault::Toml(value) | KeyDefault::Example(value) = key.default {
                let name = keys::dotted_key(&section.parts(), key.name);
                let text = set(&default_text(), &name, value).unwrap();
                assert_ne!(get(&text, &name).unwrap().origin, ValueOrigin::Default, "{name}");
                let text = unset(&text, &name).unwrap();
                assert_eq!(get(&text, &name).unwrap().origin, ValueOrigin::Default, "{name}");
            }
        }
    }
}

#[test]
fn a_wrong_setting_is_refused_without_a_place() {
    let refused = |key: &str, value: &str| set(&default_text(), key, value).unwrap_err().to_string();
    let messages = [
        refused("guard.comand", "[]"),
        refused("gaurd.command", "[]"),
        refused("guard", "[]"),
        refused("guard.command", "[]"),
        refused("guard.command", "just ci && just lint"),
        refused("max_iterations", "0"),
        refused("executor.kind", "claud"),
        refused("executor.kind", "command"),
        refused("not a key", "1"),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r#"
    unknown key `comand` in [guard]; did you mean `command`?
    unknown key `gaurd` at the top level; did you mean `guard`?
    `guard` is a section and cannot be given a value
    `guard.command` must be a program and its arguments as a list of strings, not an empty list
    `guard.command` must be a program and its arguments as a list of strings, not `just ci && just lint`
    `max_iterations` must be a whole number from 1 to 1000000, not 0
    `executor.kind` must be one of "codex", "claude", "opencode", "gemini", "command", not "claud"; did you mean `claude`?
    `executor.kind` names "command", which needs `executor.command`
    unknown key `not a key` at the top level
    "#);
}

#[test]
fn settings_are_shown_with_their_origin() {
    let text = "max_iterations = 7\n[executor.plan]\nmodel = \"m\"\n[prices.\"a.b\"]\ninput = 1\noutput = 2\n";
    let settings = list_settings(text, Path::new(FILE)).unwrap();
    let origin = |setting: &SettingEntry| match setting.origin {
        ValueOrigin::File { line } => {
            Some(format!("{line}: {} = {}", setting.key, setting.value.as_deref().unwrap_or("off")))
        }
        ValueOrigin::Default => None,
    };
    let from_file: Vec<_> = settings.iter().filter_map(origin).collect();
    insta::assert_snapshot!(from_file.join("\n"), @r#"
    1: max_iterations = 7
    3: executor.plan.model = "m"
    5: prices."a.b".input = 1
    6: prices."a.b".output = 2
    "#);
    let daemon = list_daemon_settings("log_level = \"warn\"\n", Path::new(FILE)).unwrap();
    let level = daemon.iter().find(|setting| setting.key == "log_level");
    assert_eq!(level.map(|level| level.origin), Some(ValueOrigin::File { line: 1 }));
    let shown: Vec<_> = settings.iter().map(|setting| setting.key.as_str()).collect();
    assert!(shown.contains(&"max_cost_usd") && !shown.contains(&"executor.plan.kind"));
    assert_eq!(get(text, "max_cost_usd").unwrap().value, None);
    assert_eq!(get(text, "max_iterations").unwrap().value.as_deref(), Some("7"));
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "[a-z=\\[\\]\"'.\\n# {},0-9é]{0,80}") {
        let _ = parse(&text, Path::new(FILE));
        let _ = set(&text, "guard.command", &text);
    }
}
