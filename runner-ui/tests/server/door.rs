//! Access control: the token, the cookie, the host name, the origin, and no request that changes anything.

use crate::kit::{HttpReply, UiProcess, UiStage};

/// Sends a request without the token.
fn get_without_token(ui: &UiProcess, path: &str, headers: &str) -> HttpReply {
    ui.raw(&format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{headers}Connection: close\r\n\r\n", ui.port))
}

#[test]
fn nothing_is_told_without_the_token() {
    let stage = UiStage::with_played_run();
    let ui = stage.ui();
    let paths = [
        "/api/session",
        "/api/health",
        "/api/repos",
        "/api/tree",
        "/api/iterations/seen/1/executor.log",
        "/events",
        "/api/nothing",
    ];
    let wrong = [
        "",
        "Authorization: Bearer \r\n",
        "Authorization: Bearer x\r\n",
        "Authorization: Basic eDp5\r\n",
        "Cookie: token=x\r\n",
    ];
    for path in paths {
        for headers in wrong {
            let reply = get_without_token(ui, path, headers);
            assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"), "{path} {headers}");
        }
        let in_address = get_without_token(ui, &format!("{path}?token={}", ui.token), "");
        assert_eq!(in_address.status, 401, "{path}");
    }
}

#[test]
fn the_token_is_changed_for_a_cookie_that_scripts_and_other_sites_do_not_get() {
    let stage = UiStage::with_played_run();
    let ui = stage.ui();
    let session = ui.get("/api/session");
    let cookie = session.header("set-cookie").expect("a cookie").to_owned();
    let (pair, attributes) = cookie.split_once("; ").expect("attributes");
    assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Strict");
    assert!(!cookie.contains(&ui.token), "other servers on this host see the cookie");
    let reply = get_without_token(ui, "/api/repos", &format!("Cookie: theme=dark; {pair}\r\n"));
    assert_eq!((reply.status, reply.header("set-cookie")), (200, None));
    assert_eq!(get_without_token(ui, "/api/session", &format!("Cookie: {pair}\r\n")).status, 200);
    let value = pair.split_once('=').expect("a value").1;
    assert_eq!(get_without_token(ui, "/api/repos", &format!("Authorization: Bearer {value}\r\n")).status, 401);
}

#[test]
fn another_name_for_this_machine_leads_nowhere() {
    let stage = UiStage::with_played_run();
    let ui = stage.ui();
    let under = |host: &str| {
        let token = &ui.token;
        ui.raw(&format!(
            "GET /api/repos HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        ))
    };
    let port = ui.port;
    for host in [
        format!("rebound.example:{port}"),
        "127.0.0.1".into(),
        format!("127.0.0.1:{}", port ^ 1),
        format!("0.0.0.0:{port}"),
        String::new(),
    ] {
        assert_eq!(under(&host).status, 403, "{host}");
    }
    for host in [format!("localhost:{port}"), format!("[::1]:{port}")] {
        assert_eq!(under(&host).status, 200, "{host}");
    }
    let page = ui.raw(&format!("GET / HTTP/1.1\r\nHost: rebound.example:{port}\r\nConnection: close\r\n\r\n"));
    assert_eq!(page.status, 403, "not even the page");
    let nobody = ui.raw("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert!((400..500).contains(&nobody.status), "{nobody:?}");
}

#[test]
fn another_page_reads_nothing_with_the_cookie() {
    let stage = UiStage::with_played_run();
    let ui = stage.ui();
    let from = |headers: &[(&str, &str)]| ui.ask("GET", "/api/repos", headers);
    for origin in ["http://evil.example", "null", "http://localhost:3000"] {
        let reply = from(&[("Origin", origin)]);
        assert_eq!((reply.status, reply.code().as_str()), (403, "forbidden"), "{origin}");
    }
    for site in ["cross-site", "same-site"] {
        assert_eq!(from(&[("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", "cors")]).status, 403, "{site}");
    }
    let own = from(&[("Origin", &format!("http://127.0.0.1:{}", ui.port)), ("Sec-Fetch-Site", "same-origin")]);
    assert_eq!(own.status, 200);
    for reply in [own, from(&[("Origin", "http://evil.example")]), ui.get("/")] {
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
}

#[test]
fn only_looking_is_allowed() {
    let stage = UiStage::with_played_run();
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"] {
        for path in ["/api/repos", "/api/session", "/", "/events", "/api/nothing"] {
            let reply = stage.ui().ask(method, path, &[]);
            assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD")), "{method} {path}");
        }
    }
    let connect = stage.ui().raw("CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\nConnection: close\r\n\r\n");
    assert!((400..500).contains(&connect.status), "{connect:?}");
}

#[test]
fn every_reply_forbids_what_the_page_does_not_need() {
    let stage = UiStage::with_played_run();
    let ui = stage.ui();
    let log = "/api/iterations/seen/1/executor.log";
    for reply in [
        ui.get("/"),
        ui.get("/api/repos"),
        ui.get(log),
        ui.get("/api/nothing"),
        ui.ask("POST", "/", &[]),
        get_without_token(ui, "/api/tree", ""),
    ] {
        let policy = reply.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("base-uri 'none'"), "{policy}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(reply.header("cross-origin-resource-policy"), Some("same-origin"));
        assert!(reply.header("cache-control").is_some());
    }
    assert_eq!(ui.get("/api/repos").header("cache-control"), Some("no-store"));
    assert_eq!(ui.get("/").header("cache-control"), Some("no-cache"));
}

#[test]
fn the_page_is_on_both_loopbacks_and_nowhere_else() {
    let stage = UiStage::with_played_run();
    let ui = stage.ui();
    let listens = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let port = format!(":{:04X} ", ui.port);
    let own = |table: String| {
        let listening = table
            .lines()
            .filter(|line| line.contains(" 0A "))
            .filter_map(|line| line.split_whitespace().nth(1).map(str::to_owned));
        listening.filter(|local| format!("{local} ").contains(&port)).collect::<Vec<_>>()
    };
    assert_eq!(own(listens("/proc/net/tcp")), [format!("0100007F:{:04X}", ui.port)]);
    let six = own(listens("/proc/net/tcp6"));
    assert!(six.iter().all(|local| local.starts_with("00000000000000000000000001000000:")), "{six:?}");
}
