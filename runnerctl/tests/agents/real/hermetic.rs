//! The person's own configuration and the files of earlier sessions have no effect on a session.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use runner_testkit::model::{ModelReply, ModelServer, ReplyScript};

use super::agent::RealAgent;
use super::stage::{AgentStage, StageSetup, done_reply, with_work};

with_all_agents!(planted_settings_configure_no_session, sessions_leave_nothing_beside_the_work_tree);

const PLANT: &str = include_str!("hermetic/plant.sh");

fn planted_settings_configure_no_session(agent: RealAgent) {
    let other = ModelServer::start(ReplyScript::new().always(done_reply("I am another service.")));
    // Codex's own sandbox would prevent a session from planting some of the files. The prompt quotes none of them.
    let setup = StageSetup::for_agent(agent).with_config(|config| {
        config.executor("sandbox = \"danger-full-access\"").section("[prompt]\ninstructions = []")
    });
    let stage = setup.start(ReplyScript::new());
    let marks = stage.home.path().join("marks");
    fs::create_dir(&marks).expect("a folder can be made");
    stage.home.install("plant", PLANT);
    // A login shell has its own `PATH`.
    let program = stage.home.path().join("bin/plant").display().to_string();
    let plant = |folder: &str, word: &str| format!("{program} {folder} {} {} {word}", other.url(), marks.display());
    // The person's own configuration, at every place where a program looks.
    let home = stage.home.path().display();
    let person = plant(&format!("{home} {home}/config"), "person");
    stage.home.run_program(Path::new("/bin/sh"), &["-euc", &person]).exits(0);
    // The first session plants these in the work tree, including files that git ignores.
    let planting = ModelReply::run(&plant(". .", "session"));
    stage.model.set_script(with_work(ReplyScript::new().then(planting).then(done_reply("Planted."))));
    stage.run().exits(0);
    stage.assert_ended_as(&["RedGuard", "Accepted"]);
    assert!(stage.repo.path().join(".env").exists(), "what the session wrote stays: {}", stage.log());
    assert_eq!((other.requests().len(), other.other_requests()), (0, Vec::new()), "another service was asked");
    assert_eq!(names_in(&marks), Vec::<String>::new(), "a planted program ran");
    let requests = stage.model.requests();
    assert_eq!(requests.len(), 4, "{}", stage.log());
    for request in requests {
        let text = request.body.to_string();
        assert!(!text.contains("PLANTED-"), "what was planted reaches the model: {text}");
    }
}

/// What is written beside the work tree all the same, by the beginnings of its paths: by a program that is asked for its
/// version before a session, and by opencode where its login is.
fn known_leftovers(agent: RealAgent) -> &'static [&'static str] {
    match agent {
        RealAgent::Codex => &["tmp/arg0-linux"],
        RealAgent::Claude => &[],
        RealAgent::Gemini => &[".gemini"],
        RealAgent::Opencode => &["cache", "config/opencode", "data", "tmp/opencode", "xdg-state"],
    }
}

fn sessions_leave_nothing_beside_the_work_tree(agent: RealAgent) {
    let stage = AgentStage::new(
        agent,
        with_work(ReplyScript::new().then(ModelReply::run("mktemp; echo 1 > other")).then(done_reply("I think so."))),
    );
    let before = person_files(&stage);
    stage.run().exits(0);
    stage.assert_ended_as(&["RedGuard", "Accepted"]);
    let is_known = |path: &String| known_leftovers(agent).iter().any(|known| path.starts_with(known));
    let left: Vec<String> = person_files(&stage).difference(&before).filter(|path| !is_known(path)).cloned().collect();
    assert_eq!(left, Vec::<String>::new());
    assert_eq!(
        stage.model.other_requests().iter().filter(|request_path| !request_path.contains("/v1/models")).count(),
        0
    );
}

/// Returns the files and folders below the person's home and the folders of their agents, except for the runner's own.
fn person_files(stage: &AgentStage) -> BTreeSet<String> {
    let home = stage.home.path();
    let of_runner =
        [stage.repo.path().to_owned(), stage.home.state(), home.join("run"), stage.repo.script().folder().to_owned()];
    let folders = stage.home.env().iter().filter(|(name, _)| name == "CODEX_HOME" || name == "CLAUDE_CONFIG_DIR");
    let mut found = BTreeSet::new();
    for root in folders.map(|(_, value)| PathBuf::from(value)).chain([home.to_owned()]) {
        let mut open = vec![root.clone()];
        while let Some(folder) = open.pop() {
            for path in paths_in(&folder).into_iter().filter(|path| !of_runner.contains(path)) {
                found.insert(path.strip_prefix(&root).expect("it is below").display().to_string());
                if path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
                    open.push(path);
                }
            }
        }
    }
    found
}

fn paths_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder can be read").map(|entry| entry.expect("an entry"));
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
