import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createScratchFolder,
  entry,
  listAlive,
  listEffects,
  listProcesses,
  type Played,
  play,
} from "../support/demo.ts";
import { createRepository, runGit, token } from "../support/trees.ts";

describe("the demo on a repository", () => {
  let home: string;
  let target: string;
  let played: Played;

  beforeAll(async () => {
    home = realpathSync(mkdtempSync(join(tmpdir(), "demo-test-")));
    target = createRepository(join(home, "teapot"));
    played = await play(home, [target, "--keep"]);
  });
  afterAll(() => rmSync(home, { recursive: true, force: true }));

  test("the demo runs to its end and names the model it used", () => {
    expect(played.err).toBe("");
    expect(played.code).toBe(0);
    expect(played.out).toContain(
      "Model: a scripted model that decides from the tool results. It needs no key and sends no data.",
    );
  });

  test("the demo prints each transition as a line with the saved data", () => {
    expect(played.out).toMatch(/start → survey\.executing {3}input saved: messages \+1 · \d+ B/);
    expect(played.out).toMatch(/tools\.committing → survey\.executing {3}step 2 saved: messages \+1, facts files set/);
    expect(played.out).toMatch(
      /plan\.committing → check\.executing {3}step 6 saved: parts set to 3 items, facts parts set/,
    );
    expect(played.out).toMatch(/ask\.executing → ask\.interrupted/);
    expect(played.out).toMatch(/write\.committing → done/);
  });

  test("the demo shows a retry and labels the failure as simulated", () => {
    expect(played.out).toMatch(/list_files: attempt 1 failed: .*simulated by the demo.*; retry in \d+ ms/);
    expect(played.out).toMatch(/✓ list_files {2}[\d.]+ m?s · 2 attempts/);
  });

  test("the demo kills a process with three tool calls in flight, and the calls run again under their keys", () => {
    expect(played.out).toContain("SIGKILL with 3 tool calls in flight.");
    for (const tool of ["count_lines", "scan_todos", "find_copies"]) {
      expect(played.out).toMatch(new RegExp(`… ${tool} +started, no result`));
      expect(played.out).toMatch(
        new RegExp(`↻ ${tool} {2}was in flight: runs again, pure, key audit/[0-9a-z]{12}/main/3:0/call_\\d`),
      );
    }
    expect(played.out).toContain("the previous process died; this process resumes the run");
  });

  test("a tool call of the demo that finished before the kill is not repeated", () => {
    expect(played.out).toMatch(/= git_history 200 {2}saved result reused/);
    expect(played.out).toMatch(/= read_file README\.md {2}saved result reused/);
    expect(played.out).toContain("no finished effect ran twice");
    const effects = listEffects(played.state);
    for (const [key, lines] of effects) {
      const first = lines.findIndex(({ phase }) => phase === "finished");
      expect(lines.slice(first + 1), key).toEqual([]);
    }
    const repeated = [...effects.values()].filter((lines) => lines.filter(({ phase }) => phase === "began").length > 1);
    expect(repeated.map((lines) => lines[0]?.name).sort()).toEqual([
      "count_lines",
      "find_copies",
      "list_files",
      "scan_todos",
    ]);
  });

  test("the interrupt of the demo is answered by another process than the one that raised it", () => {
    expect(played.out).toContain("yes (default, because stdin is not a terminal)");
    expect(played.pids).toHaveLength(5);
    expect(new Set(played.pids).size).toBe(5);
  });

  test("the demo history shows the changes of each step, and a fork ends differently", () => {
    expect(played.out).toMatch(
      /^ {2}4 +tools +[\d.]+ KB {3}messages \+\d, facts (\w+\+?)+ set, counts filesRead set$/m,
    );
    expect(played.out).toMatch(/^ {2}answer +yes +no$/m);
    expect(played.out).toMatch(/^ {2}last steps +judge → ask → write +judge → ask → decline$/m);
    expect(played.out).toMatch(/^ {2}report +written +not written$/m);
  });

  test("the demo summary counts steps, calls, retries, bytes and time", () => {
    expect(played.out).toMatch(
      /Total {2}12 steps · \d+ tool calls · 1 retry · [\d.]+ KB of changes saved · \d+ effects finished, none repeated after finishing · 5 processes · [\d.]+ m?s/,
    );
  });

  test("a program without the graph prints who wrote what, which calls ran, and who wrote a value on each branch [ND2, ND3, ND4]", () => {
    const printed = printThread();
    expect(printed).toMatch(
      /^superstep \d+ {2}parent \d+ {2}main .*\n {4}tools {2}tasks \d:0\n {4}tool list_files {2}\d:0 call_\d {2}pure {2}ok {2}attempts 2, processes 1, failures: unavailable$/m,
    );
    // Three calls were in flight when the process was killed; the others had their results.
    const calls = [...printed.matchAll(/^ {4}tool (\w+) .* attempts (\d), processes (\d), failures: (\w+)$/gm)];
    const repeated = calls.filter(([, , , processes]) => processes !== "1").map(([, ...parts]) => parts);
    expect(repeated).toEqual(
      ["count_lines", "scan_todos", "find_copies"].map((name) => [name, "2", "2", "process_died"]),
    );
    expect(calls.filter(([, name]) => name === "read_file").every(([, , attempts]) => attempts === "1")).toBe(true);
    expect(printed).toMatch(/^ {2}\+ \/facts\/lines {2}"[\d,]+ lines.*"\n {6}written by \d:0 call_6$/m);
    expect(printed).toMatch(/^ {2}\+ \/facts\/todos {2}".*TODO.*"\n {6}written by \d:0 call_7$/m);
    expect(printed).toMatch(
      /^ {4}interrupt write_report {2}answered by default: \{"ok":true\}\n {2}\+ \/decision {2}\{"write":true\}\n {6}written by \d:0 default$/m,
    );
    expect(printed).toMatch(/^ {4}interrupt write_report {2}answered by demo: \{"ok":false,/m);
    expect(printed).toMatch(/^superstep \d+ {2}parent \d+ {2}other-answer .*\n {4}decline {2}tasks \d:0$/m);
    expect(printed).toMatch(/^run\.completed {2}main {2}\{"seq":\d+,.*"steps":\d+/m);
    expect(printThread("/decision").split("\n")).toEqual([
      expect.stringMatching(/^main add superstep \d+ of main \[ 'ask' \] .*by: 'default'/),
      expect.stringMatching(/^other-answer add superstep \d+ of other-answer \[ 'ask' \] .*by: 'demo'/),
      "",
    ]);
    expect(printThread("/counts/filesRead").split("\n")[1]).toMatch(
      /^other-answer add superstep \d+ of main \[ 'tools' \] .*call: 'call_6'/,
    );
    expect(printThread("/verdict").split("\n")[1]).toMatch(/^other-answer add superstep \d+ of main \[ 'judge' \]/);
  });

  /** Prints the thread of the demo, or the writes of one value, by a program of the docs that has no graph. */
  function printThread(...path: readonly string[]): string {
    const program = join(import.meta.dirname, "../../../../packages/statewright/test/docs/serving/thread-log.ts");
    const args = [program, join(played.state, "audit.db"), "audit", ...path];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect(stderr).toBe("");
    return stdout;
  }

  test("the demo report contains the findings", () => {
    const report = readFileSync(/^Report: {3}(.+)$/m.exec(played.out)?.[1] ?? "", "utf8");
    expect(report).toContain("**act now.**");
    expect(report).toContain("| high | packages/lid/src/lid.ts | text that looks like a secret |");
    expect(report).toContain("- todos: 1 comment TODO, FIXME or HACK");
    expect(report).toContain("- history: 2 commits read");
  });

  test("a secret of the audited tree is in no file that the demo wrote", () => {
    expect(played.out).toMatch(/read_file src\/index\.ts .*1 secret redacted/);
    for (const name of readdirSync(played.state)) {
      const bytes = readFileSync(join(played.state, name));
      expect(bytes.includes(token), name).toBe(false);
    }
  });

  test("the demo leaves the audited tree unchanged and no process running", () => {
    expect(runGit(target, "status", "--porcelain", "--ignored")).toBe("");
    expect(listAlive(played.pids)).toEqual([]);
    expect(listProcesses(home)).toEqual([]);
  });
});

test("the demo without --keep leaves only the report, and with --out only the report at that path", async () => {
  const home = createScratchFolder();
  const target = createRepository(join(home, "teapot"));
  const first = await play(home, [target]);
  expect(first.code).toBe(0);
  expect(readdirSync(first.state)).toEqual(["report.md"]);
  const second = await play(home, [target, "--out", "mine.md"]);
  expect(second.code).toBe(0);
  expect(readdirSync(home).filter((name) => name.startsWith("statewright-demo-"))).toHaveLength(1);
  expect(readFileSync(join(home, "mine.md"), "utf8")).toContain("# Audit");
});

test("a refusal writes no report at its path, and the other branch of the demo writes its own report", async () => {
  const home = createScratchFolder();
  const played = await play(home, [createRepository(join(home, "teapot")), "--answer", "no"]);
  expect(played.code).toBe(0);
  expect(played.out).toMatch(/^ {2}report +not written +written$/m);
  expect(readdirSync(played.state)).toEqual(["report.other-answer.md"]);
});

/** A program of many Linux hosts that gives a command a terminal. */
const terminalProgram = "script";
const canPlayTerminal = process.platform === "linux" && spawnSync(terminalProgram, ["--version"]).status === 0;

test.skipIf(!canPlayTerminal)("the demo asks in colour at a terminal and stores the note", async () => {
  const home = createScratchFolder();
  const target = createRepository(join(home, "teapot"));
  const command = `'${process.execPath}' '${entry}' '${target}' --keep`;
  const { NO_COLOR: _plain, ...inherited } = process.env;
  const terminal = spawn(terminalProgram, ["-qec", command, "/dev/null"], {
    env: { ...inherited, TMPDIR: home, TERM: "xterm" },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let out = "";
  let asked = 0;
  terminal.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
    const answers = ["perhaps\n", "no\n", "not today\n"];
    for (; asked < (out.match(/yes or no\? |a note \(or just Enter\): /g) ?? []).length; asked++)
      terminal.stdin.write(answers[asked] ?? "\n");
  });
  const code = await new Promise((resolve) => terminal.once("close", resolve));
  expect(code).toBe(0);
  expect(out).toContain("\u001b[1m");
  expect(out).toMatch(/answer +no +yes/);
  expect(out).toMatch(/note +not today/);
  expect(listProcesses(home)).toEqual([]);
});
