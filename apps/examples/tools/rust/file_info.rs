//! A plugin in Rust without packages: size, kind and lines of a file. Build it with `rustc -O file_info.rs`, start it with `./file_info`.
use std::fs;
use std::io::{self, BufRead, Write};

const DEFINITION: &str = r#"{"name":"file_info","description":"Tell the size, the kind and the number of lines of a file.","parameters":{"type":"object","properties":{"path":{"type":"string","description":"Path of the file"}},"required":["path"],"additionalProperties":false},"effect":"pure"}"#;

/// The value of a string that stands behind a key in one line of JSON.
fn string_at(line: &str, key: &str) -> Option<String> {
    let start = line.find(&format!("\"{key}\":\""))? + key.len() + 4;
    let mut value = String::new();
    let mut chars = line[start..].chars();
    loop {
        match chars.next()? {
            '"' => return Some(value),
            '\\' => match chars.next()? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                'b' => value.push('\u{8}'),
                'f' => value.push('\u{c}'),
                'u' => {
                    let first = hex(&mut chars)?;
                    let code = if (0xd800..0xdc00).contains(&first) {
                        chars.nth(1)?;
                        0x10000 + ((first - 0xd800) << 10) + (hex(&mut chars)? - 0xdc00)
                    } else {
                        first
                    };
                    value.push(char::from_u32(code)?);
                }
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
}

fn hex(chars: &mut std::str::Chars) -> Option<u32> {
    let digits: String = chars.take(4).collect();
    u32::from_str_radix(&digits, 16).ok()
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            control if (control as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", control as u32)),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

fn file_info(path: &str) -> Result<String, String> {
    let about = fs::metadata(path).map_err(|error| format!("Cannot read {path}: {error}"))?;
    if about.is_dir() {
        return Ok(format!("{path}: folder"));
    }
    let bytes = fs::read(path).map_err(|error| format!("Cannot read {path}: {error}"))?;
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
    Ok(format!("{path}: file, {} bytes, {lines} lines", about.len()))
}

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    for line in io::stdin().lock().lines() {
        let line = line?;
        match string_at(&line, "type").as_deref() {
            Some("describe") => writeln!(out, "{DEFINITION}")?,
            Some("call") => {
                let (text, error) = match string_at(&line, "path").ok_or("path is missing".to_string()).and_then(|path| file_info(&path)) {
                    Ok(text) => (text, false),
                    Err(text) => (text, true),
                };
                writeln!(out, r#"{{"content":[{{"type":"text","text":{}}}],"error":{error}}}"#, quoted(&text))?;
            }
            _ => {}
        }
        out.flush()?;
    }
    Ok(())
}
