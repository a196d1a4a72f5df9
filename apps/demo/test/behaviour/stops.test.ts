import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { beforeAll, describe, expect, test } from "vitest";
import { createScratchFolder, listAlive, listProcesses, type PlayOptions, play } from "../support/demo.ts";
import { createRepository, createTree } from "../support/trees.ts";

/** Do something once, when the demo has printed `text`. */
function onceOutputHas(
  text: string,
  act: (demo: Parameters<NonNullable<PlayOptions["onOutput"]>>[1], out: string) => void,
): PlayOptions {
  let done = false;
  return {
    onOutput: (out, demo) => {
      if (done || !out.includes(text)) return;
      done = true;
      act(demo, out);
    },
  };
}

const resumeInstruction = /^Progress is saved in (.+)\. Resume with:\n {2}npm run demo -- --resume \1$/m;

/** At one moment of each kind; with STATEWRIGHT_WHOLE=1 at all. */
function selectMoments(...moments: readonly string[]): readonly string[] {
  return process.env["STATEWRIGHT_WHOLE"] === "1" ? moments : moments.slice(0, 1);
}

test.each(selectMoments("attempt 1 failed", "Answer an interrupt", "started (pid", "step 6 saved"))(
  "Ctrl-C at “%s” stops the demo with everything saved, and the demo continues from there",
  async (moment) => {
    const home = createScratchFolder();
    const target = createRepository(join(home, "teapot"));
    const stopped = await play(
      home,
      [target],
      onceOutputHas(moment, (demo) => demo.kill("SIGINT")),
    );
    expect(stopped.err).toBe("");
    expect(stopped.code).toBe(130);
    expect(stopped.out).toMatch(resumeInstruction);
    expect(listAlive(stopped.pids)).toEqual([]);
    expect(listProcesses(home)).toEqual([]);

    const resumed = await play(home, ["--resume", stopped.state]);
    expect(resumed.err).toBe("");
    expect(resumed.code).toBe(0);
    expect(readFileSync(join(stopped.state, "report.md"), "utf8")).toContain("- lines: ");
  },
);

test("a second Ctrl-C ends the demo at once and leaves no process", async () => {
  const home = createScratchFolder();
  const target = createRepository(join(home, "teapot"));
  const stopped = await play(
    home,
    [target],
    onceOutputHas("calls 7 tools in parallel", (demo) => {
      demo.kill("SIGINT");
      setImmediate(() => demo.kill("SIGINT"));
    }),
  );
  expect(stopped.code).toBe(130);
  await expect.poll(() => [...listAlive(stopped.pids), ...listProcesses(home)], { timeout: 5_000 }).toEqual([]);
  expect((await play(home, ["--resume", stopped.state])).code).toBe(0);
});

describe("a killed demo", () => {
  let whole: string;
  beforeAll(async () => {
    const home = mkdtempSync(join(tmpdir(), "demo-test-"));
    const played = await play(home, [createRepository(join(home, "teapot"))]);
    whole = readFileSync(join(played.state, "report.md"), "utf8");
    rmSync(home, { recursive: true, force: true });
  });

  test.each(
    selectMoments("step 6 saved", "process 4 started", "step 4 saved", "ask.interrupted → ask.executing", "Fork from"),
  )("a demo killed at “%s” leaves no process, and continues to the report of an uninterrupted demo", async (moment) => {
    const home = createScratchFolder();
    const killed = await play(
      home,
      [createRepository(join(home, "teapot"))],
      onceOutputHas(moment, (demo) => demo.kill("SIGKILL")),
    );
    expect(killed.code).toBe(-1);
    await expect.poll(() => [...listAlive(killed.pids), ...listProcesses(home)], { timeout: 10_000 }).toEqual([]);

    const resumed = await play(home, ["--resume", killed.state]);
    expect(resumed.err).toBe("");
    expect(resumed.code).toBe(0);
    expect(resumed.out).toMatch(/^ {2}answer +yes +no$/m);
    expect(resumed.out).toMatch(/^ {2}run +done +done$/m);
    expect(readFileSync(join(killed.state, "report.md"), "utf8")).toBe(whole);
  });
});

test("a demo process killed from outside is reported, and the demo continues later", async () => {
  const home = createScratchFolder();
  const target = createRepository(join(home, "teapot"));
  const died = await play(
    home,
    [target],
    onceOutputHas("step 5 saved", (_demo, out) => {
      const pid = Number([...out.matchAll(/\(pid (\d+)\)/g)].at(-1)?.[1]);
      process.kill(pid, "SIGKILL");
    }),
  );
  expect(died.code).toBe(1);
  expect(died.err).toContain("The process exited before its job finished (SIGKILL).");
  expect(died.out).toMatch(resumeInstruction);
  expect((await play(home, ["--resume", died.state])).code).toBe(0);
});

test("a full disk pauses the demo run with a message, and the run continues once there is room", async () => {
  const home = createScratchFolder();
  // Folders with long names make a list of parts that does not fit.
  const files = Array.from({ length: 390 }, (_file, index) => [`${"long-name-".repeat(20)}${index}/a.js`, "1\n"]);
  const target = createTree(join(home, "long"), { ...Object.fromEntries(files), "README.md": "# Long\n" });
  const paused = await play(home, [target, "--max-db-kb", "128"]);
  expect(paused.code).toBe(1);
  expect(paused.err).toMatch(/^Paused: store_full: .+Free disk space/);
  expect(paused.out).toMatch(resumeInstruction);
  expect(listAlive(paused.pids)).toEqual([]);
  const resumed = await play(home, ["--resume", paused.state]);
  expect(resumed.err).toBe("");
  expect(resumed.code).toBe(0);
});

test("a closed stdout reader ends the demo without an error", async () => {
  const home = createScratchFolder();
  const target = createRepository(join(home, "teapot"));
  const left = await play(
    home,
    [target],
    onceOutputHas("Run an agent", (demo) => demo.stdout?.destroy()),
  );
  expect(left.err).toBe("");
  await expect.poll(() => [...listAlive(left.pids), ...listProcesses(home)], { timeout: 5_000 }).toEqual([]);
});
