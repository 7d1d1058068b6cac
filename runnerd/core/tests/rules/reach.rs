//! The files a guard reaches if its scripts are named by variables, patterns or conditions, or run by other programs.

use runner_core::guard::watched_files::WatchedFiles;

use crate::watched::{Tree, begun, matches, paths, words};

/// A guard, the files it reaches, and how new files are treated.
struct Case {
    /// Its command; a tab replaces a space inside a word.
    command: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// Which of these are watched.
    watched: &'static [&'static str],
    /// Files that a session cannot add unnoticed.
    seen: &'static [&'static str],
    /// Files that a session may add.
    unseen: &'static [&'static str],
}

const CASE: Case = Case { command: "make test", files: &[], watched: &[], seen: &[], unseen: &[] };

fn find_files(command: &str, files: &[(&str, &str)]) -> WatchedFiles {
    let command: Vec<String> = words(command).into_iter().map(|word| word.replace('\t', " ")).collect();
    begun(&command, &[], &Tree::of(files))
}

fn check(cases: &[Case]) {
    let mut wrong = Vec::new();
    for case in cases {
        let watched = find_files(case.command, case.files);
        let is_seen = |path: &&&str| matches(&watched.globs, path);
        let seen = case.seen.iter().filter(is_seen);
        let unseen = case.unseen.iter().filter(is_seen);
        let seen = seen.copied().collect::<Vec<_>>();
        let unseen = unseen.copied().collect::<Vec<_>>();
        if paths(&watched) != case.watched || seen != case.seen || !unseen.is_empty() {
            let found = (paths(&watched), seen, unseen);
            wrong.push(format!("{} {:?}\n  {found:?}\n  {:?}", case.command, case.files, watched.globs));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_make_includes_is_reached_and_what_it_may_include_is_seen() {
    check(&[
        Case {
            files: &[("Makefile", "-include local.mk\ninclude need.mk\ntest:\n\ttrue")],
            watched: &["Makefile"],
            seen: &["local.mk"],
            unseen: &["need.mk"],
            ..CASE
        },
        Case {
            files: &[("Makefile", "sinclude local.mk"), ("local.mk", "test:\n\tsh t.sh"), ("t.sh", "")],
            watched: &["Makefile", "local.mk", "t.sh"],
            ..CASE
        },
        Case {
            files: &[("Makefile", "include $(wildcard mk/*.mk)"), ("mk/a.mk", "t:\n\t@./t.sh"), ("t.sh", "")],
            watched: &["Makefile", "mk/a.mk", "t.sh"],
            seen: &["mk/b.mk"],
            unseen: &["mk/b.sh", "b.mk"],
            ..CASE
        },
        Case {
            files: &[
                ("Makefile", "DIR := ci\nSCRIPT ?= $(DIR)/t.sh\ninclude $(DIR)/x.mk\nt:\n\t@sh $(SCRIPT)"),
                ("ci/x.mk", ""),
                ("ci/t.sh", ""),
                ("other.sh", ""),
            ],
            watched: &["Makefile", "ci/t.sh", "ci/x.mk"],
            ..CASE
        },
        Case {
            files: &[
                ("Makefile", "include config.mk\nDO = $(Q)sh b.sh\nt:\n\t$(DO)\n\t$(Q)$(PYTHON) $(CHECK)\n\t$(RUN)\n"),
                ("config.mk", "CHECK = ci/check.py\nRUN = bash \\\n  ci/a.sh --all\n"),
                ("ci/check.py", ""),
                ("ci/a.sh", ""),
                ("b.sh", ""),
            ],
            watched: &["Makefile", "b.sh", "ci/a.sh", "ci/check.py", "config.mk"],
            seen: &["ci/subprocess.py"],
            ..CASE
        },
        Case {
            files: &[
                (
                    "Makefile",
                    "OBJS := $(SRC:.c=.o)\nDEPS := $(OBJS:.o=.d)\n-include $(DEPS)\n-include $(OBJS:%.o=%.d)\n\
                     -include build/*.d .depend\n-include $(wildcard .deps/*.Po)\n%.o: %.c\n\t$(CC) $(CFLAGS) -c $<\n",
                ),
                ("src/main.c", ""),
            ],
            watched: &["Makefile"],
            unseen: &["build/a.d", ".depend", ".deps/a.Po", "src/new.c", "a.d"],
            ..CASE
        },
        Case {
            files: &[
                ("Makefile", "t:\n\tfor t in $(TESTS); do sh $$t || exit 1; done\nTESTS := a.sh b.sh"),
                ("b.sh", ""),
            ],
            watched: &["Makefile", "b.sh"],
            ..CASE
        },
        Case {
            command: "just ci",
            files: &[("justfile", "import? 'local.just'\nmod? extra\nci:\n  true")],
            watched: &["justfile"],
            seen: &["local.just", "extra.just", "extra/mod.just"],
            ..CASE
        },
    ]);
}

#[test]
fn plain_variables_are_followed() {
    let case = |files| Case { command: "sh check.sh", files, watched: &["check.sh", "ci/a.sh"], ..CASE };
    check(&[
        case(&[("check.sh", "SCRIPT=ci/a.sh\nsh $SCRIPT"), ("ci/a.sh", "")]),
        case(&[("check.sh", "export DIR='ci'; sh \"${DIR}/a.sh\""), ("ci/a.sh", "")]),
        case(&[("check.sh", "readonly D=ci S=$D/a.sh; \"$S\" --all"), ("ci/a.sh", "")]),
        case(&[("check.sh", "bash \"${SCRIPT:-ci/a.sh}\""), ("ci/a.sh", "")]),
        case(&[("check.sh", "ALL=(ci/a.sh ci/b.sh)\nfor s in \"${ALL[@]}\"; do \"$s\"; done"), ("ci/a.sh", "")]),
        case(&[("check.sh", "CMD='sh ci/a.sh'; $CMD; eval \"$CMD\""), ("ci/a.sh", "")]),
        case(&[("check.sh", "sh $FLAGS ci/a.sh"), ("ci/a.sh", "")]),
        case(&[("check.sh", "S=lint; S=ci/a; $SUDO sh $S.sh"), ("ci/a.sh", "")]),
        case(&[("check.sh", "cd \"$(dirname \"$0\")/ci\" && ./a.sh"), ("ci/a.sh", "")]),
        case(&[("check.sh", "cd ci && sh -c './a.sh'"), ("ci/a.sh", "")]),
        Case {
            command: "just ci",
            files: &[
                (
                    "justfile",
                    "dir := \"ci\"\nscript := dir / \"a.sh\"\nci:\n  sh {{ script }}\n  bash '{{dir}}/b.sh'\n",
                ),
                ("ci/a.sh", ""),
                ("ci/b.sh", ""),
            ],
            watched: &["ci/a.sh", "ci/b.sh", "justfile"],
            ..CASE
        },
        Case {
            command: "sh check.sh",
            files: &[("check.sh", ". ci/env.sh; sh $SCRIPT"), ("ci/env.sh", "SCRIPT=b.sh"), ("b.sh", "")],
            watched: &["b.sh", "check.sh", "ci/env.sh"],
            ..CASE
        },
    ]);
}

#[test]
fn a_script_that_may_be_missing_is_seen_when_it_comes_and_one_that_is_to_be_written_is_work() {
    let case = |files, seen, unseen| Case { command: "sh check.sh", files, watched: &["check.sh"], seen, unseen };
    check(&[
        case(&[("check.sh", "[ -f x ] && . x")], &["x"], &["y"]),
        case(&[("check.sh", "test -f x && . ./x")], &["x"], &[]),
        case(&[("check.sh", "if [ -e ci/x ]; then\n  . ci/x\nfi")], &["ci/x"], &[]),
        case(&[("check.sh", "X=ci/x\n[ ! -r \"$X\" ] || . \"$X\"")], &["ci/x"], &[]),
        case(&[("check.sh", "[ -x ci/x ] || exit 0; ci/x")], &["ci/x"], &[]),
        case(&[("check.sh", ". ./x || true\nsource y 2>/dev/null\n. z >/dev/null 2>&1 || :")], &["x", "y", "z"], &[]),
        case(&[("check.sh", "sh x.sh; . y.sh; ./z.sh; sh w.sh || true")], &[], &["x.sh", "y.sh", "z.sh", "w.sh"]),
        case(&[("check.sh", "test -f x.sh || exit 1\nsh x.sh")], &[], &["x.sh"]),
        // Files that must exist, and files that may exist.
        case(&[("check.sh", "test -f x.sh && sh x.sh")], &[], &["x.sh"]),
        case(
            &[("check.sh", "test -f ci/x.sh && sh ci/x.sh\nif [ -f y.sh ]; then sh y.sh; fi")],
            &["ci/x.sh", "y.sh"],
            &[],
        ),
        case(&[("check.sh", "test -f x.sh && grep -q y x.sh; test -e work")], &[], &["x.sh", "work"]),
        case(
            &[("check.sh", "[ -f .venv/bin/activate ] && . .venv/bin/activate\n[ -f \"$HOME/e\" ] && . \"$HOME/e\"")],
            &[],
            &[".venv/bin/activate", "e"],
        ),
    ]);
}

#[test]
fn scripts_that_no_commit_has_are_named_and_programs_that_are_built_are_not() {
    let missing = |command, definition: &[&str], text| {
        let definition: Vec<_> = definition.iter().map(|glob| (*glob).to_owned()).collect();
        let files = Tree::of(&[("ci/check.sh", text), ("Makefile", text), ("justfile", text)]);
        begun(&words(command), &definition, &files).missing.into_iter().collect::<Vec<_>>().join(" ")
    };
    let script = ". ./local.sh\nsh x; ./run.sh; target/debug/tests; python3 ci/check.py; . ./y || true; build/mkdep";
    assert_eq!(
        missing("sh ci/check.sh", &[], script),
        "ci/check.py ci/ci/check.py ci/local.sh ci/run.sh ci/x local.sh run.sh x"
    );
    assert_eq!(missing("sh ci/check.sh", &["!local.sh", "/ci/**"], ". ./local.sh\n. ./env"), "env");
    assert_eq!(missing("make test", &[], "include local.mk\n-include other.mk\ntest:\n\tsh t.sh"), "local.mk t.sh");
    assert_eq!(missing("just ci", &[], "import 'local.just'\nci:\n    . ./.env"), ".env local.just");
    assert_eq!(missing("sh ci/check.sh", &[], ". venv/bin/activate; . \"$1\"; sh \"$(pick)\""), "");
}

#[test]
fn scripts_behind_patterns_are_followed_and_new_ones_seen() {
    let case = |files| Case {
        command: "sh check.sh",
        files,
        watched: &["check.sh", "ci/a.sh"],
        seen: &["ci/b.sh"],
        unseen: &["b.sh", "src/b.sh"],
    };
    check(&[
        case(&[("check.sh", "for t in ci/*.sh; do sh \"$t\"; done"), ("ci/a.sh", ""), ("src/c.sh", "")]),
        case(&[("check.sh", "for t in ci/*.sh\ndo\n  . \"$t\"\ndone"), ("ci/a.sh", "")]),
        case(&[("check.sh", "D=ci; for t in $D/*.sh; do \"$t\" || exit 1; done"), ("ci/a.sh", "")]),
        case(&[("check.sh", "sh ci/*.sh"), ("ci/a.sh", "")]),
        case(&[("check.sh", "cat ci/*.sh | sh -e"), ("ci/a.sh", "")]),
        case(&[("check.sh", "run-parts --exit-on-error ci"), ("ci/a.sh", "")]),
        case(&[("check.sh", "find ci -name '*.sh' | sort | xargs -n1 sh"), ("ci/a.sh", "")]),
        case(&[("check.sh", "find ./ci -type f -name '*.sh' -exec sh -eu {} \\;"), ("ci/a.sh", "")]),
        case(&[("check.sh", "find ci -name '*.sh' -exec {} +"), ("ci/a.sh", "")]),
        case(&[("check.sh", "sh \"ci/$1.sh\""), ("ci/a.sh", "")]),
        case(&[("check.sh", "bats ${CI:+--tap} ci/${FILTER}"), ("ci/a.sh", "")]),
        case(&[("check.sh", "ls ci/*.sh | xargs -n1 bash"), ("ci/a.sh", "")]),
        case(&[("check.sh", "ls ci | xargs -I% sh ci/%"), ("ci/a.sh", "")]),
        case(&[("check.sh", "git ls-files 'ci/*.sh' | xargs -n 1 sh"), ("ci/a.sh", "")]),
        case(&[("check.sh", "find ci -name '*.sh' | while read -r f; do sh \"$f\"; done"), ("ci/a.sh", "")]),
        case(&[("check.sh", "for f in $(find ci -name '*.sh'); do sh $f; done"), ("ci/a.sh", "")]),
        case(&[("check.sh", "find ci -name '*.sh' -print0 | xargs -0 -I{} sh -c '. \"$1\"' _ {}"), ("ci/a.sh", "")]),
        Case {
            command: "sh check.sh",
            files: &[("check.sh", "cd ci && for t in *.sh; do ./$t; done"), ("ci/a.sh", "")],
            watched: &["check.sh", "ci/a.sh"],
            seen: &["ci/b.sh"],
            ..CASE
        },
        Case {
            command: "bats test/*.bats other",
            files: &[("test/a.bats", "")],
            watched: &["test/a.bats"],
            seen: &["test/b.bats", "other/c.bats"],
            unseen: &["test/b.sh"],
        },
        Case {
            command: "sh check.sh",
            files: &[("check.sh", "for f in a.sh b.sh; do sh $f; done"), ("b.sh", "")],
            watched: &["b.sh", "check.sh"],
            unseen: &["a.sh"],
            ..CASE
        },
        Case {
            command: "sh check.sh",
            files: &[
                (
                    "check.sh",
                    "find . -name '*.sh' | xargs shellcheck\nfind src -name '*.py' | xargs python -m py_compile\n\
                     find src -name '*.py' -exec python {} \\;\ngit ls-files '*.sh' | xargs bash -n\n\
                     for f in src/*.sh; do sh -n \"$f\"; done; ls src/*.c | xargs cc; sh app.sh | grep x",
                ),
                ("src/a.sh", ""),
                ("src/a.py", ""),
                ("app.sh", ""),
            ],
            watched: &["check.sh"],
            unseen: &["src/b.sh", "src/b.py", "b.sh", "src/b.c"],
            ..CASE
        },
    ]);
}

#[test]
fn a_module_that_would_take_the_place_of_a_tool_is_seen() {
    check(&[
        Case {
            command: "python3 -m pytest -m slow",
            seen: &["pytest.py", "pytest/__init__.py", "_pytest/__init__.py", "pytest.cpython-312-x86_64-linux-gnu.so"],
            unseen: &["slow.py", "app.py", "pytest_helpers.py", "tests/test_a.py"],
            ..CASE
        },
        Case { command: "coverage run -m unittest", seen: &["unittest/__init__.py"], unseen: &["app.py"], ..CASE },
        Case { command: "python -I -m mypy src", unseen: &["mypy.py"], ..CASE },
        Case { command: "python -m app", unseen: &["app.py", "app/__init__.py", "app/__main__.py"], ..CASE },
        Case {
            command: "python -m pytest",
            files: &[("pytest/__init__.py", ""), ("pytest/__main__.py", "")],
            unseen: &["pytest.py", "_pytest/__init__.py"],
            ..CASE
        },
        Case {
            command: "python -m tools.check",
            files: &[("tools/check.py", ""), ("tools/lib.py", ""), ("app/check.py", "")],
            watched: &["tools/check.py", "tools/lib.py"],
            seen: &["tools/__init__.py", "tools/subprocess.py"],
            unseen: &["tools/a/b.py", "subprocess.py"],
        },
        Case {
            command: "sh check.sh",
            files: &[("check.sh", "python check.py && python ci/all.py"), ("check.py", ""), ("ci/all.py", "")],
            watched: &["check.py", "check.sh", "ci/all.py"],
            seen: &["ci/subprocess.py"],
            unseen: &["subprocess.py", "app.py"],
        },
    ]);
}

#[test]
fn folders_that_are_links_are_followed_and_the_links_watched() {
    check(&[
        Case {
            command: "sh ci/check.sh",
            files: &[("ci", "120000:tools/ci"), ("tools/ci/check.sh", "sh ../lint.sh"), ("tools/lint.sh", "")],
            watched: &["ci", "tools/ci/check.sh", "tools/lint.sh"],
            ..CASE
        },
        Case {
            command: "sh check.sh",
            files: &[("check.sh", "for f in ci/*.sh; do sh $f; done"), ("ci", "120000:./tools"), ("tools/a.sh", "")],
            watched: &["check.sh", "ci", "tools/a.sh"],
            seen: &["tools/b.sh"],
            ..CASE
        },
        Case { command: "sh a/x", files: &[("a", "120000:b"), ("b", "120000:a")], watched: &["a", "b"], ..CASE },
        Case { command: "sh a/x", files: &[("a", "120000:../b"), ("b/x", "")], watched: &["a"], ..CASE },
    ]);
}

#[test]
fn programs_in_folders_of_path_and_packages_of_a_workspace_are_reached() {
    check(&[
        Case {
            command: "sh check.sh",
            files: &[("check.sh", "export PATH=\"$PWD/t:$PATH\"\nmytool --all"), ("t/mytool", ""), ("mytool", "")],
            watched: &["check.sh", "t/mytool"],
            ..CASE
        },
        Case { command: "env PATH=t:/bin mytool", files: &[("t/mytool", "")], watched: &["t/mytool"], ..CASE },
        Case {
            command: "npm -w pk test",
            files: &[
                ("package.json", "{}"),
                ("pk/package.json", r#"{"scripts": {"test": "sh t.sh"}}"#),
                ("pk/t.sh", ""),
            ],
            watched: &["package.json", "pk/package.json", "pk/t.sh"],
            ..CASE
        },
        Case {
            command: "sh check.sh",
            files: &[("check.sh", "make -f ci/$(uname).mk all"), ("ci/Linux.mk", "all:\n\tsh t.sh"), ("t.sh", "")],
            watched: &["check.sh", "ci/Linux.mk", "t.sh"],
            seen: &["ci/Darwin.mk"],
            ..CASE
        },
    ]);
}

#[test]
fn modules_that_a_text_of_python_imports_are_reached_or_told() {
    check(&[
        Case {
            command: "python3 -c import\tcheck,os;\tcheck.run()",
            files: &[("check.py", "")],
            watched: &["check.py"],
            ..CASE
        },
        Case {
            command: "sh t.sh",
            files: &[("t.sh", "python3 - <<X\nfrom tools.lint import all as a\nX"), ("tools/lint.py", "")],
            watched: &["t.sh", "tools/lint.py"],
            ..CASE
        },
    ]);
    let imports = find_files("sh t.sh", &[("t.sh", "python3 -c 'import app, sys'; python -m app.cli"), ("app.py", "")]);
    assert_eq!(imports.unknown, ["guard.command: python module app"]);
}

#[test]
fn what_cannot_be_told_is_said_and_nothing_else() {
    for (text, unknown) in [
        ("sh \"$(pick)\"", vec!["check.sh: sh \"$(pick)\""]),
        ("run() {\n  sh $1\n}", vec!["check.sh: sh $1"]),
        (
            "eval \"$X\"\n. $ENV\ncurl -s https://x | sh -s -- -y",
            vec!["check.sh: . $ENV", "check.sh: eval \"$X\"", "check.sh: sh -s -- -y"],
        ),
        (
            "bash -c \"$CMD\"; cat list | xargs -n1 sh; python $SCRIPT",
            vec!["check.sh: bash -c \"$CMD\"", "check.sh: python $SCRIPT", "check.sh: xargs -n1 sh"],
        ),
        ("git ls-files | grep sh$ | xargs sh", vec!["check.sh: xargs sh"]),
        ("for f in *; do sh $f; done", vec!["check.sh: do sh $f"]),
        (
            "$PYTHON -m pytest \"$@\"; $(CC) x.c; ${CARGO:-cargo} test; \"$@\"; exec \"$@\"; . \"$HOME/.x\"\n\
             . \"$NVM_DIR/nvm.sh\"; eval \"$(ssh-agent -s)\"; sh ci/a.sh \"$@\"; sh \"$DIR/x.sh\"; sh \"$0\" again\n\
             sh <<EOF\ntrue\nEOF\nawk '{print $1}' x; perl -ne 'print $x' y; python -c \"$X\"; echo $1 | tee x\n\
             case $1 in */*) echo ;; *://*) sh ci/a.sh ;; esac; bats ${CI:+--tap} ci/\n",
            vec![],
        ),
    ] {
        let watched = find_files("sh check.sh", &[("check.sh", text), ("ci/a.sh", "")]);
        assert_eq!(watched.unknown, unknown, "{text}");
    }
    let scripts = [("check.sh", "perl lib.pl\nnode ci/t.js && (cd src; python app.py)\nruby gone.rb"), ("lib.pl", "")];
    let scripts = [scripts.as_slice(), &[("ci/t.js", ""), ("src/app.py", "")]].concat();
    let watched = find_files("sh check.sh", &scripts);
    assert_eq!(watched.unknown, ["check.sh: perl lib.pl", "check.sh: python app.py"]);
    assert_eq!(paths(&find_files("python app.py", &[("app.py", "")])), ["app.py"]);
    assert!(find_files("python app.py", &[("app.py", "")]).unknown.is_empty());
    let large = "#".repeat(1024 * 1024 + 1);
    assert_eq!(find_files("sh a.sh", &[("a.sh", &large)]).unknown, ["a.sh: it has more than a mebibyte"]);
    let many: Vec<String> = (0..300).map(|n| format!("ci/{n}.sh")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|path| (path.as_str(), "")).collect();
    assert_eq!(find_files("run-parts ci", &many).unknown, ["guard.command: it leads to too many files"]);
    let long = format!("sh $1 {}", "x".repeat(100));
    assert_eq!(find_files("sh a.sh", &[("a.sh", &long)]).unknown[0].len(), "a.sh: ".len() + 80);
    let several = (0..40).map(|n| format!("sh $1 {n}\n")).collect::<Vec<_>>().concat();
    assert_eq!(find_files("sh a.sh", &[("a.sh", &several)]).unknown.len(), 11);
}

#[test]
fn hostile_texts_end() {
    let doubled = (0..200).map(|n| format!("V{n}=\"$V{0}$V{0}$V{0}\"\n", n + 1)).collect::<Vec<_>>().concat();
    let both = (0..60).map(|n| format!("X=a{n}\n")).collect::<Vec<_>>().concat() + &"sh $X$X$X/$X $X\n".repeat(2000);
    for text in [
        "X='sh -c \"$X\"'\nsh -c \"$X\"".to_owned(),
        "X=$X$X$X\nX=$Y$Y\nY=$X$X\nsh $X\n$X".to_owned(),
        doubled + "V200=x\nsh $V0; $V0",
        both,
        "sh ".to_owned() + &"$(".repeat(50_000),
        "sh ".to_owned() + &"${".repeat(50_000),
        "{{".repeat(50_000),
        "sh ".to_owned() + &"$X".repeat(100_000) + "\nX=aaaaaaaa",
        "xargs ".repeat(10_000) + "sh",
        "for f in ".repeat(10_000),
        (0..2000).map(|n| format!("for f in d{n}/*.sh; do sh $f; done; cd d{n}\n")).collect::<Vec<_>>().concat(),
    ] {
        find_files("sh check.sh", &[("check.sh", &text)]);
    }
}

#[test]
fn honest_guards_are_quiet() {
    check(&[
        Case {
            command: "tox -e py",
            files: &[
                (
                    "tox.ini",
                    "[testenv]\ndeps = pytest\ncommands =\n    python -m pytest {posargs} tests\n    coverage report -m\n",
                ),
                ("pyproject.toml", ""),
                ("tests/test_a.py", ""),
            ],
            watched: &["pyproject.toml", "tox.ini"],
            unseen: &["app.py", "tests/test_b.py", "posargs", "tests.py"],
            ..CASE
        },
        Case {
            command: "npm test",
            files: &[(
                "package.json",
                r#"{"scripts": {"test": "node --test $FILES && eslint 'src/**/*.js'", "x": "node app.js"}}"#,
            )],
            watched: &["package.json"],
            unseen: &["app.js", "src/a.js", "test/a.test.js"],
            ..CASE
        },
        Case {
            command: "cargo xtask ci",
            files: &[("Cargo.toml", ""), (".cargo/config.toml", "[alias]\nxtask = \"run -p xtask --\"")],
            watched: &[".cargo/config.toml", "Cargo.toml"],
            unseen: &["src/lib.rs", "xtask/src/main.rs"],
            ..CASE
        },
        Case {
            command: "just ci",
            files: &[
                (
                    "justfile",
                    "set shell := [\"bash\", \"-uc\"]\nimport 'ci.just'\nci: lint\nrun *ARGS:\n  cargo run -- {{ ARGS }}\n",
                ),
                (
                    "ci.just",
                    "lint:\n  #!/usr/bin/env bash\n  for f in $(git ls-files '*.sh'); do shellcheck \"$f\"; done\n",
                ),
                ("a.sh", ""),
            ],
            watched: &["ci.just", "justfile"],
            unseen: &["b.sh", "src/a.rs"],
            ..CASE
        },
        Case {
            command: "pre-commit run -a",
            files: &[
                (
                    ".pre-commit-config.yaml",
                    "repos:\n- repo: local\n  hooks:\n  - id: x\n    entry: bash ci/hook.sh\n    files: \\.py$\n",
                ),
                ("ci/hook.sh", "for f in \"$@\"; do grep -q x \"$f\"; done"),
            ],
            watched: &[".pre-commit-config.yaml", "ci/hook.sh"],
            unseen: &["a.py"],
            ..CASE
        },
        Case {
            files: &[
                (
                    "Makefile",
                    "CC ?= cc\nSRC := $(wildcard src/*.c)\nOBJ := $(patsubst src/%.c,build/%.o,$(SRC))\nTESTS := $(wildcard tests/*.c)\n\
                 -include $(OBJ:.o=.d)\ntest: $(OBJ)\n\tfor t in $(TESTS:.c=); do ./build/$$t || exit 1; done\n\t$(CC) -o app $(OBJ)\n\t./app | diff - want.txt\n\
                 clean:\n\trm -rf build/*\n",
                ),
                ("src/a.c", ""),
            ],
            watched: &["Makefile"],
            unseen: &["src/b.c", "tests/b.c", "build/b.o", "app"],
            ..CASE
        },
        Case {
            files: &[(
                "Makefile",
                "VENV = .venv\n$(VENV)/bin/activate: req.txt\n\tpython3 -m venv $(VENV)\ntest:\n\t. $(VENV)/bin/activate; python -m unittest\n\t$(VENV)/bin/pytest\n",
            )],
            watched: &["Makefile"],
            unseen: &[".venv/bin/activate", ".venv/bin/pytest", "app.py", "venv.py"],
            ..CASE
        },
        Case {
            command: "./gradlew check",
            files: &[
                (
                    "gradlew",
                    "#!/bin/sh\nAPP_HOME=$( cd \"${APP_HOME:-./}\" && pwd -P ) || exit\nCLASSPATH=$APP_HOME/gradle/wrapper/gradle-wrapper.jar\neval \"set -- $(printf '%s\\n' \"$DEFAULT_JVM_OPTS\" | xargs -n1 | sed ' s~x~y~ ' | tr '\\n' ' ')\" '\"$@\"'\nexec \"$JAVACMD\" \"$@\"\n",
                ),
                ("build.gradle", ""),
            ],
            watched: &["build.gradle", "gradlew"],
            unseen: &["src/main/java/A.java"],
            ..CASE
        },
        Case { command: "go test ./...", files: &[("go.mod", "")], unseen: &["a.go", "a_test.go"], ..CASE },
    ]);
}

#[test]
fn what_turns_a_target_of_make_off_or_writes_its_file_is_seen() {
    check(&[
        Case {
            files: &[(
                "Makefile",
                "-include local.mk\ntest: app\n\tcargo test\napp: a.c\n\tcc -o app a.c\nlint:\n\tsh l.sh >$@\n",
            )],
            watched: &["Makefile"],
            seen: &["test", "test/a.py", "Makefile.sh", "GNUmakefile.sh", "Makefile,v", "local.mk.sh"],
            unseen: &["app", "lint", "lint/x", "a.c", "tests", "Makefile.am"],
            ..CASE
        },
        Case {
            files: &[("Makefile", ".PHONY: test \\\n  lint\ntest lint:\n\ttrue\ncheck:\n\ttouch check\nci: test\n")],
            watched: &["Makefile"],
            unseen: &["test", "lint/a", "check", "ci"],
            ..CASE
        },
        Case {
            files: &[("Makefile", "test:\n\tpytest test\n"), ("test/a.py", "")],
            watched: &["Makefile"],
            seen: &["conftest.py"],
            unseen: &["test/b.py"],
            ..CASE
        },
    ]);
}

#[test]
fn programs_that_run_another_one_with_options_are_looked_through() {
    for command in [
        "env -i sh lib.sh",
        "nice -n 5 sh lib.sh",
        "setsid -w sh lib.sh",
        "flock -n /tmp/x sh lib.sh",
        "timeout -k 5 -s KILL 60 env -u A B=c sh -e lib.sh",
        "sudo -u ci -E bash lib.sh",
        "sh <lib.sh",
        "sh -e < 'lib.sh' >log",
        "nice ./lib.sh run",
    ] {
        let files = [("check.sh", command), ("lib.sh", ""), ("run", ""), ("log", "")];
        assert_eq!(paths(&find_files("sh check.sh", &files)), ["check.sh", "lib.sh"], "{command}");
    }
}
