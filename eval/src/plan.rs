//! The inputs of a case's run: its configuration with command-line changes, its task tree, its justfile, and what the
//! machine lacks for it. Pure.

use std::str::FromStr;

use serde_json::{Value, json};
use toml::Table;

use crate::case::{Case, CheckRule};
use crate::error::EvalError;
use crate::sandbox::{HostEnv, SCRIPTED_AGENT};

/// Changes to a case from the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CaseOverrides {
    pub(crate) executor: Option<String>,
    pub(crate) model: Option<String>,
    /// Label of the runs.
    pub(crate) label: Option<String>,
}

impl FromStr for CaseOverrides {
    type Err = String;

    /// Parses a variant: `[LABEL=]KIND[:MODEL]`; the label defaults to the rest.
    fn from_str(text: &str) -> Result<Self, String> {
        let (label, rest) = text.split_once('=').unwrap_or((text, text));
        let (kind, model) = rest.split_once(':').map_or((rest, None), |(kind, model)| (kind, Some(model)));
        if label.is_empty() || kind.is_empty() || model.is_some_and(str::is_empty) {
            return Err(format!("`{text}` is no variant: [LABEL=]KIND[:MODEL], as fast=claude:haiku is"));
        }
        let owned = |text: &str| Some(text.to_owned());
        Ok(Self { executor: owned(kind), model: model.and_then(owned), label: owned(label) })
    }
}

/// Everything a run of a case is configured with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunPlan {
    pub(crate) config: Table,
    /// Kind of the agent; `script` for a scripted one.
    pub(crate) executor: String,
    pub(crate) model: Option<String>,
    pub(crate) label: Option<String>,
    pub(crate) tree: Option<Value>,
    pub(crate) justfile: Option<String>,
}

/// The runner's default agent.
const DEFAULT_AGENT_KIND: &str = "codex";

/// Creates the plan of a case.
pub(crate) fn plan_run(case: &Case, changes: &CaseOverrides, host_env: &HostEnv) -> Result<RunPlan, EvalError> {
    let mut config = case.config.clone();
    let executor = match (&case.script, &changes.executor) {
        (Some(_), Some(kind)) => {
            let message = format!("case {} has a scripted agent: `--executor {kind}` has no meaning there", case.id);
            return Err(EvalError::usage(message));
        }
        (Some(_), None) => "script".to_owned(),
        (None, Some(kind)) => kind.clone(),
        (None, None) => choose_agent(case, host_env),
    };
    let table = config_section(&mut config, "executor")?;
    if executor == "script" {
        table.insert("kind".into(), "command".into());
        table.insert("command".into(), vec![toml::Value::from(SCRIPTED_AGENT)].into());
    } else {
        if changes.executor.is_some() {
            table.remove("command");
            table.remove("model");
        }
        table.insert("kind".into(), executor.clone().into());
    }
    if let Some(model) = &changes.model {
        table.insert("model".into(), model.clone().into());
    }
    let model = table.get("model").and_then(toml::Value::as_str).map(str::to_owned);
    let names: Vec<String> = host_env.toolchains().into_keys().chain(case.env.keys().cloned()).collect();
    pass_variables(&mut config, &names)?;
    let tree = case.tree.as_ref().map(|root| fill_tree(root, &config));
    Ok(RunPlan { config, executor, model, label: changes.label.clone(), tree, justfile: build_justfile(case) })
}

/// Returns the kind of agent that the case configures, else the first of its agents that is installed.
fn choose_agent(case: &Case, host_env: &HostEnv) -> String {
    let is_installed = |kind: &&String| host_env.find_program(kind).is_some();
    let agents = &case.requires.agents;
    let named = case.executor().or_else(|| agents.iter().find(is_installed).or(agents.first()).cloned());
    named.unwrap_or_else(|| DEFAULT_AGENT_KIND.into())
}

fn config_section<'a>(config: &'a mut Table, name: &str) -> Result<&'a mut Table, EvalError> {
    let table = config.entry(name).or_insert_with(|| Table::new().into()).as_table_mut();
    table.ok_or_else(|| EvalError::usage(format!("`config.{name}` is no table")))
}

/// Adds variables to those passed on to agent and guard.
fn pass_variables(config: &mut Table, names: &[String]) -> Result<(), EvalError> {
    if names.is_empty() {
        return Ok(());
    }
    let table = config_section(config, "env")?;
    for key in ["agent", "guard"] {
        let list = table.entry(key).or_insert_with(|| Vec::<toml::Value>::new().into()).as_array_mut();
        let list = list.ok_or_else(|| EvalError::usage(format!("`config.env.{key}` is no list")))?;
        for name in names {
            if !list.iter().any(|existing| existing.as_str() == Some(name)) {
                list.push(name.as_str().into());
            }
        }
    }
    Ok(())
}

/// Fills a node of a case's tree with the defaults of a new node.
fn fill_tree(root: &Table, config: &Table) -> Value {
    let attempts = config.get("max_attempts_default").and_then(toml::Value::as_integer).unwrap_or(3);
    let root = serde_json::to_value(root).unwrap_or(Value::Null);
    json!({"version": 1, "root": fill_node(&root, 0, attempts)})
}

fn fill_node(fields: &Value, order: i64, attempts: i64) -> Value {
    let children = fields.get("children").and_then(Value::as_array).into_iter().flatten();
    let children: Vec<Value> = (1..).zip(children).map(|(order, child)| fill_node(child, order, attempts)).collect();
    let mut node = json!({
        "id": "root", "order": order, "title": "", "goal": "", "acceptance": [], "passes": false, "attempts": 0,
        "max_attempts": attempts, "children": children,
    });
    if let (Some(node), Some(given)) = (node.as_object_mut(), fields.as_object()) {
        node.extend(
            given.iter().filter(|(key, _)| *key != "children").map(|(key, value)| (key.clone(), value.clone())),
        );
    }
    node
}

/// Returns the justfile whose `just ci` guard runs the commands that the case checks.
fn build_justfile(case: &Case) -> Option<String> {
    let is_just = case.guard().is_none_or(|command| command.first().is_some_and(|program| program == "just"));
    let command = |rule: &CheckRule| match rule {
        CheckRule::CommandSucceeds { cmd, .. } => {
            Some(format!("    {}\n", cmd.iter().map(|word| quote_word(word)).collect::<Vec<_>>().join(" ")))
        }
        _ => None,
    };
    let commands: String = case.checks.iter().filter_map(|check| command(&check.rule)).collect();
    (is_just && !commands.is_empty()).then(|| format!("# Made of the checks of the case.\nci:\n{commands}"))
}

/// Quotes a word for a shell in a just recipe.
fn quote_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&byte);
    let word = word.replace("{{", "{{{{");
    if !word.is_empty() && word.bytes().all(is_plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Returns what the machine lacks to run a case, in the order in which a person would fix it.
pub(crate) fn find_missing(case: &Case, plan: &RunPlan, host_env: &HostEnv) -> Option<String> {
    let requires = &case.requires;
    let missing = |program: &String| host_env.find_program(program).is_none();
    if let Some(program) = requires.programs.iter().find(|program| missing(program)) {
        return Some(format!("the program {program} is not in PATH"));
    }
    if let Some(name) = requires.variables.iter().find(|name| !host_env.has_variable(name)) {
        return Some(format!("the variable {name} is not set"));
    }
    let is_program = |kind: &str| !matches!(kind, "script" | "command");
    if is_program(&plan.executor) && host_env.find_program(&plan.executor).is_none() {
        let others = requires.agents.iter().filter(|kind| **kind != plan.executor).cloned().collect::<Vec<_>>();
        let others = if others.is_empty() { String::new() } else { format!(", nor is {}", others.join(" or ")) };
        return Some(format!("the agent {} is not in PATH{others}", plan.executor));
    }
    let guard = case.guard().and_then(|command| command.first().cloned()).unwrap_or_else(|| "just".into());
    (!guard.contains('/') && missing(&guard)).then(|| format!("the guard's program {guard} is not in PATH"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parse_case(rest: &str) -> Case {
        let text = format!("[case]\nid = \"a\"\ngoal = \"g\"\n{rest}");
        crate::case::parse(&text, Path::new("a.toml")).expect("parses")
    }

    fn plan_for(rest: &str, changes: &CaseOverrides) -> RunPlan {
        plan_run(&parse_case(rest), changes, &HostEnv::from_env()).expect("a plan")
    }

    #[test]
    fn a_variant_is_a_kind_with_a_model_and_a_name() {
        let read = |text: &str| {
            text.parse::<CaseOverrides>().map(|overrides| (overrides.label, overrides.executor, overrides.model))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("codex"), Ok((some("codex"), some("codex"), None)));
        assert_eq!(read("claude:opus"), Ok((some("claude:opus"), some("claude"), some("opus"))));
        assert_eq!(read("local=opencode:ollama/x:7b"), Ok((some("local"), some("opencode"), some("ollama/x:7b"))));
        assert!(["", "=codex", "a=", "codex:", "a=:m"].iter().all(|text| read(text).is_err()));
    }

    #[test]
    fn a_script_is_a_command_and_no_other_agent_takes_its_place() {
        let plan_of = plan_for("[agent]\nscript = \"true\"\n", &CaseOverrides::default());
        assert_eq!(plan_of.executor, "script");
        assert_eq!(plan_of.config["executor"]["kind"].as_str(), Some("command"));
        let changes = CaseOverrides { executor: Some("codex".into()), ..CaseOverrides::default() };
        assert!(plan_run(&parse_case("[agent]\nscript = \"true\"\n"), &changes, &HostEnv::from_env()).is_err());
    }

    #[test]
    fn another_agent_takes_the_place_of_kind_command_and_model() {
        let changes = CaseOverrides { executor: Some("claude".into()), model: Some("opus".into()), label: None };
        let plan = plan_for("[config.executor]\nkind = \"command\"\ncommand = [\"x\"]\nmodel = \"m\"\n", &changes);
        let executor = plan.config["executor"].as_table().expect("a table");
        assert_eq!((executor["kind"].as_str(), executor["model"].as_str()), (Some("claude"), Some("opus")));
        assert!(!executor.contains_key("command"));
    }

    #[test]
    fn an_agent_that_is_configured_stands_above_those_that_would_do() {
        let agents = "[requires]\nagents = [\"no-such-agent\", \"sh\", \"cat\"]\n";
        assert_eq!(plan_for(agents, &CaseOverrides::default()).executor, "sh");
        let plan = plan_for(&format!("[config.executor]\nkind = \"claude\"\n{agents}"), &CaseOverrides::default());
        assert_eq!(plan.executor, "claude");
    }

    #[test]
    fn variables_of_the_case_are_named_for_agent_and_guard() {
        let plan = plan_for("[env]\nFLAVOUR = \"x\"\n[config.env]\nagent = [\"OWN\"]\n", &CaseOverrides::default());
        let names = |key: &str| plan.config["env"][key].as_array().expect("a list").clone();
        assert!(names("agent").contains(&"OWN".into()) && names("agent").contains(&"FLAVOUR".into()));
        assert!(names("guard").contains(&"FLAVOUR".into()) && !names("guard").contains(&"OWN".into()));
    }

    #[test]
    fn a_tree_is_filled_with_what_new_nodes_have() {
        let text = "[tree]\ntitle = \"All\"\n[[tree.children]]\nid = \"one\"\ntitle = \"One\"\n";
        let tree = plan_for(text, &CaseOverrides::default()).tree.expect("a tree");
        assert_eq!(tree["root"]["id"], "root");
        assert_eq!(tree["root"]["children"][0]["order"], 1);
        assert_eq!(tree["root"]["children"][0]["max_attempts"], 3);
    }

    #[test]
    fn the_guard_is_made_of_the_commands_that_are_checked() {
        let checks = "[[checks]]\ntype = \"command_succeeds\"\ncmd = [\"sh\", \"-c\", \"echo 'a' {{b\"]\n";
        let justfile = plan_for(checks, &CaseOverrides::default()).justfile.expect("a justfile");
        assert!(justfile.ends_with("ci:\n    sh -c 'echo '\\''a'\\'' {{{{b'\n"), "{justfile}");
        assert_eq!(
            plan_for(&format!("[config.guard]\ncommand = [\"make\"]\n{checks}"), &CaseOverrides::default()).justfile,
            None
        );
    }

    #[test]
    fn what_a_machine_lacks_is_named() {
        let missing_for = |rest: &str| {
            let case = parse_case(rest);
            let around = HostEnv::from_env();
            find_missing(&case, &plan_run(&case, &CaseOverrides::default(), &around).expect("a plan"), &around)
        };
        let guard = "[config.guard]\ncommand = [\"sh\"]\n";
        let script = format!("[agent]\nscript = \"\"\n{guard}");
        assert_eq!(missing_for(&script), None);
        let why = missing_for(&format!("{script}[requires]\nprograms = [\"sh\", \"no-such-program\"]\n"));
        assert_eq!(why.as_deref(), Some("the program no-such-program is not in PATH"));
        let why = missing_for(&format!("{script}[requires]\nvariables = [\"NO_SUCH_VARIABLE\"]\n"));
        assert_eq!(why.as_deref(), Some("the variable NO_SUCH_VARIABLE is not set"));
        let why = missing_for(&format!("{guard}[config.executor]\nkind = \"no-such-agent\"\n"));
        assert_eq!(why.as_deref(), Some("the agent no-such-agent is not in PATH"));
    }
}
