//! What the set-up of the person and the files of earlier sessions mean to a session: nothing.

use std::fs;
use std::path::Path;

use runner_testkit::model::{ModelReply, ModelServer, ReplyScript};

use super::agent::RealAgent;
use super::stage::{AgentStage, StageSetup, done_reply, with_work};

with_all_agents!(planted_settings_configure_no_session);

const PLANT: &str = include_str!("hermetic/plant.sh");

fn planted_settings_configure_no_session(agent: RealAgent) {
    let other = ModelServer::start(ReplyScript::new().always(done_reply("I am another service.")));
    // The sandbox of codex lets nobody write some of what is planted.
    let setup = StageSetup::for_agent(agent).with_config(|config| config.executor("sandbox = \"danger-full-access\""));
    let stage = setup.start(ReplyScript::new());
    let marks = stage.home.path().join("marks");
    fs::create_dir(&marks).expect("a folder can be made");
    stage.home.install("plant", PLANT);
    // A login shell has a path of its own.
    let program = stage.home.path().join("bin/plant").display().to_string();
    let plant = |folder: &str, word: &str| format!("{program} {folder} {} {} {word}", other.url(), marks.display());
    // The person's own set-up, at each place where a program looks.
    let home = stage.home.path().display();
    let person = plant(&format!("{home} {home}/config"), "person");
    stage.home.run_program(Path::new("/bin/sh"), &["-euc", &person]).exits(0);
    // The first session plants in the work tree, files that git ignores among them.
    let planting = ModelReply::run(&plant(". .", "session"));
    stage.model.set_script(with_work(ReplyScript::new().then(planting).then(done_reply("Planted."))));
    stage.run().exits(0);
    stage.assert_ended_as(&["RedGuard", "Accepted"]);
    assert!(stage.repo.path().join(".env").exists(), "what the session wrote stays: {}", stage.log());
    assert_eq!((other.requests().len(), other.other_requests()), (0, Vec::new()), "another service was asked");
    assert_eq!(names_in(&marks), Vec::<String>::new(), "a planted program ran");
    let asked = stage.model.requests();
    assert_eq!(asked.len(), 4, "{}", stage.log());
    for request in asked {
        let text = request.body.to_string();
        assert!(!text.contains("PLANTED-"), "what was planted reaches the model: {text}");
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder can be read").map(|entry| entry.expect("an entry"));
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
