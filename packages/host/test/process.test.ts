import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { createSpawnError } from "../src/environment.ts";
import {
  HostError,
  isHostError,
  killProcessGroup,
  type RunningProcess,
  runProcess,
  startProcess,
} from "../src/index.ts";
import { createGatedCommand, getProcessGroup, signalGroup, spawnWatcher } from "../src/process-group.ts";
import {
  createManualWorld,
  getFailure,
  isRunning,
  listChildren,
  listMembers,
  onLinux,
  waitUntil,
  watchOutput,
} from "./support/processes.ts";

const hasMachineId = existsSync("/etc/machine-id") && readFileSync("/etc/machine-id", "utf8").trim().length === 32;
const posix = process.platform !== "win32";
const folder = mkdtempSync(join(tmpdir(), "statewright-process-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const fixture = (name: string) => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url));
const sh = (script: string) => ["-c", script];
const node = (script: string, ...args: string[]) => ["-e", script, ...args];

describe.runIf(posix)("running commands", () => {
  test("a failing command is a result with both outputs and its exit code", async () => {
    const result = await runProcess("sh", sh("echo o; echo e >&2; exit 3"));
    expect(result).toMatchObject({ exitCode: 3, signal: undefined, ended: "exited", stdout: "o\n", stderr: "e\n" });
    expect(result).toMatchObject({ truncated: false, droppedBytes: { stdout: 0, stderr: 0 } });
    expect(result.durationMs).toBeGreaterThan(0);
  });

  test("a command receives its arguments unchanged, without shell expansion", async () => {
    const args = ["$HOME", "`id`", "; rm -rf x", "a b", "", "'\"", "*", "line\nline", "-n", "é😀"];
    const script = "process.stdout.write(JSON.stringify(process.argv.slice(1)))";
    const { stdout } = await runProcess(process.execPath, [...node(script, "--"), ...args]);
    expect(JSON.parse(stdout)).toEqual(args);
  });

  test("a command sees the allowed and the given environment variables and no others", async () => {
    process.env["STATEWRIGHT_TEST_SECRET"] = "hidden";
    process.env["STATEWRIGHT_TEST_NAMED"] = "named";
    const script = "process.stdout.write(JSON.stringify(process.env))";
    const readOutput = async (options: object) =>
      JSON.parse((await runProcess(process.execPath, node(script), options)).stdout);
    const allowed = /^(?:PATH|HOME|LANG|LC_[A-Z]+|TERM|TMPDIR|TZ)$/;
    // Set by the gate, and by a bash that is installed as sh.
    const ofTheShell = ["SHLVL", "_"];

    const plain = Object.keys(await readOutput({ env: { GIVEN: "a=b\nc", PWD: process.cwd() } })).filter(
      (n) => !ofTheShell.includes(n),
    );
    expect(plain.filter((name) => !allowed.test(name)).sort()).toEqual(["GIVEN", "PWD"]);
    expect(await readOutput({ env: { GIVEN: "a=b\nc", PWD: process.cwd() } })).toMatchObject({
      GIVEN: "a=b\nc",
      PWD: process.cwd(),
    });
    expect(await readOutput({})).not.toHaveProperty("PWD");
    const named = await readOutput({ inherit: ["STATEWRIGHT_TEST_NAMED"] });
    expect(named).toMatchObject({ STATEWRIGHT_TEST_NAMED: "named" });
    expect(named).not.toHaveProperty("STATEWRIGHT_TEST_SECRET");
    expect(await readOutput({ inherit: "all" })).toMatchObject({ STATEWRIGHT_TEST_SECRET: "hidden" });
    delete process.env["STATEWRIGHT_TEST_SECRET"];
    delete process.env["STATEWRIGHT_TEST_NAMED"];
  });

  test.runIf(existsSync("/bin/bash"))(
    "a bash command does not run the user's start file, with or without input",
    async () => {
      writeFileSync(join(folder, ".bashrc"), "echo from the start file\n");
      for (const options of [{}, { input: "x" }]) {
        const result = await runProcess("/bin/bash", sh("echo ran"), { ...options, env: { HOME: folder } });
        expect(result).toMatchObject({ stdout: "ran\n", stderr: "" });
      }
    },
  );

  test("a command starts in the given folder", async () => {
    expect((await runProcess("pwd", ["-P"], { cwd: "/" })).stdout).toBe("/\n");
  });

  test("a command reads its input to the end, and an empty input when none is given", async () => {
    const input = "é😀\n".repeat(200_000);
    const { stdout } = await runProcess("cat", [], { input, maxBytes: 10_000_000 });
    expect(stdout).toBe(input);
    expect((await runProcess("cat")).stdout).toBe("");
  });

  test("a command that does not read its input still completes", async () => {
    expect(await runProcess("true", [], { input: "x".repeat(5_000_000) })).toMatchObject({ exitCode: 0 });
  });

  test("a command streams its output while it runs, in whole characters", async () => {
    const output = watchOutput();
    const errors = watchOutput();
    const script = `
      process.stdout.write(Buffer.from([0xf0, 0x9f]));
      process.stderr.write("half");
      process.stdin.once("data", () => process.stdout.write(Buffer.from([0x98, 0x80]), () => process.exit(0)));`;
    const running = await startProcess(process.execPath, node(script), {
      keepInputOpen: true,
      onOutput: (chunk, stream) => (stream === "stdout" ? output : errors).onOutput(chunk),
    });
    await errors.seen("half");
    expect(output.all()).toBe("");
    await running.write("go");
    expect((await running.result).stdout).toBe("😀");
    expect(output.all()).toBe("😀");
  });

  test("a running command accepts writes until its input is closed", async () => {
    const output = watchOutput();
    const running = await startProcess("cat", [], { keepInputOpen: true, onOutput: output.onOutput });
    await running.write("one\n");
    await output.seen("one\n");
    await running.write(Buffer.from("two\n"));
    running.endInput();
    expect(await running.result).toMatchObject({ stdout: "one\ntwo\n", exitCode: 0 });
    const error = await getFailure(running.write("three"));
    expect(error).toMatchObject({ name: "HostError", code: "io" });
  });

  test("a long command output keeps its start and end", async () => {
    const result = await runProcess("sh", sh("echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last"), {
      maxBytes: 1000,
    });
    expect(result.truncated).toBe(true);
    expect(result.droppedBytes).toEqual({ stdout: 3_000_000 + 12 - 1000, stderr: 0 });
    expect(result.stdout.startsWith("first\nxxx")).toBe(true);
    expect(result.stdout.endsWith("xxx\nlast\n")).toBe(true);
    expect(result.stdout.length).toBeLessThan(1100);
  });

  test("a command does not run when its parent dies between the fork and the watcher's registration", async () => {
    const { command, args } = createGatedCommand("touch", [join(folder, "ran")], {});
    const child = spawn(command, args, { stdio: ["ignore", "ignore", "ignore", "pipe"] });
    const gate = child.stdio[3];
    gate?.destroy();
    await once(child, "exit");
    expect(readdirSync(folder)).not.toContain("ran");
  });
});

describe.runIf(posix)("commands that cannot be started", () => {
  const startFailure = (command: string, args: readonly string[] = [], options: object = {}) =>
    getFailure(runProcess(command, args, options));

  test("a command that cannot be started is an error with its name and the next step", async () => {
    const error = await startFailure("no-such-command-here");
    expect(error).toBeInstanceOf(HostError);
    expect(isHostError(error)).toBe(true);
    expect(error).toMatchObject({ code: "spawn_failed", systemCode: "ENOENT" });
    expect(String(error)).toBe(
      "HostError: Cannot start no-such-command-here (spawn ENOENT): command not found. " +
        "Install the command, correct its name, or pass its full path.",
    );
  });

  test("a start failure names the part that is wrong", async () => {
    const plain = join(folder, "plain.txt");
    writeFileSync(plain, "text");
    chmodSync(plain, 0o644);
    const cases: [string, readonly string[], object, string][] = [
      [plain, [], {}, "EACCES"],
      [folder, [], {}, "EACCES"],
      [join(plain, "x"), [], {}, "ENOENT"],
      ["./missing", [], {}, "ENOENT"],
      ["", [], {}, "ENOENT"],
      ["true", ["a\0b"], {}, "ERR_INVALID_ARG_VALUE"],
      ["true", [], { env: { "A-B": "1" } }, ""],
      ["true", [], { cwd: join(folder, "missing") }, "ENOENT"],
      ["true", [], { cwd: plain }, "ENOTDIR"],
    ];
    for (const [command, args, options, systemCode] of cases) {
      const error = await startFailure(command, args, options);
      expect(error).toMatchObject({ code: "spawn_failed" });
      if (systemCode !== "") expect(error).toMatchObject({ systemCode });
      expect(String(error)).toContain(`Cannot start ${command}`);
    }
  });

  test("arguments that are too large fail with too_large", async () => {
    expect(await startFailure("true", ["x".repeat(5_000_000)])).toMatchObject({ code: "too_large" });
  });

  test("a start refused by the process limit reports the limit and the remedy [F22]", () => {
    expect(createSpawnError("echo", "EAGAIN")).toMatchObject({ code: "spawn_failed", systemCode: "EAGAIN" });
    expect(String(createSpawnError("echo", "EAGAIN"))).toMatch(
      /Cannot start echo .*the process limit is reached.*ulimit -u/,
    );
  });

  test("no process starts without free file handles, the error is clear, and a later start works [F22]", async () => {
    const { stdout, stderr } = await runProcess("sh", [
      "-c",
      'ulimit -n 64; exec "$0" "$1"',
      process.execPath,
      fixture("no-handles.ts"),
    ]);
    expect(stderr).toBe("");
    const [before, without, after] = JSON.parse(stdout);
    expect([before, after]).toEqual(["ran", "ran"]);
    expect(without).toMatch(/^spawn_failed: Cannot start echo \(spawn EMFILE\): .*ulimit -n/);
  });
});

describe.runIf(posix)("option-like names", () => {
  test("a command whose name looks like an option still runs", async () => {
    const file = join(folder, "-c");
    writeFileSync(file, "#!/bin/sh\necho ran $1\n");
    chmodSync(file, 0o755);
    const env = { PATH: `${folder}:${process.env["PATH"]}` };
    expect((await runProcess("-c", ["x"], { env })).stdout).toBe("ran x\n");
  });
});

describe.runIf(posix)("process ends", () => {
  test("a command ended by signal n has exit code 128 + n, exit 127 is a result, and a missing shell is an error [T43]", async () => {
    expect(await runProcess("sh", sh("kill -9 $$"))).toMatchObject({
      exitCode: 137,
      signal: "SIGKILL",
      ended: "exited",
    });
    expect(await runProcess("sh", sh("kill -TERM $$"))).toMatchObject({ exitCode: 143, signal: "SIGTERM" });
    const missing = await runProcess("sh", sh("no-such-command-here"));
    expect(missing).toMatchObject({ exitCode: 127, signal: undefined, ended: "exited" });
    expect(missing.stderr).toContain("no-such-command-here");
    const error = await getFailure(runProcess("/no/such/shell", sh("true")));
    expect(error).toMatchObject({ code: "spawn_failed", systemCode: "ENOENT" });
    expect(String(error)).toContain("spawn ENOENT");
  });

  test.runIf(onLinux)("ending a shell also ends the child that holds its pipe [T42]", async () => {
    const output = watchOutput();
    const { world, armed } = createManualWorld();
    const running = await startProcess("sh", sh("sleep 1000 & echo child $!; wait"), {
      onOutput: output.onOutput,
      world,
    });
    await output.seen("\n");
    expect(listMembers(running.group.id)).toHaveLength(2);
    // The virtual clock has not moved: neither the grace period nor the linger time has ended.
    const result = await running.stop();
    expect(result).toMatchObject({ ended: "stopped", signal: "SIGTERM", exitCode: 143 });
    await waitUntil(() => listMembers(running.group.id).length === 0);
    expect(armed()).toBe(0);
  });

  test("a command ended by its deadline is an error with the output so far", async () => {
    const { world, advance } = createManualWorld();
    const output = watchOutput();
    const error = getFailure(
      runProcess("sh", sh("echo before; sleep 1000; echo after"), {
        timeoutMs: 5000,
        world,
        onOutput: output.onOutput,
      }),
    );
    await output.seen("before");
    advance(5000);
    expect(await error).toMatchObject({
      code: "timeout",
      result: { ended: "timeout", stdout: "before\n", durationMs: 5000 },
    });
    expect(String(await error)).toContain("sh did not end within 5000 ms");
  });

  test("a command that exits with 0 at its deadline is still an error", async () => {
    const { world, advance } = createManualWorld();
    const output = watchOutput();
    const script = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    const error = getFailure(runProcess("sh", sh(script), { timeoutMs: 1, world, onOutput: output.onOutput }));
    await output.seen("ready");
    advance(1);
    expect(await error).toMatchObject({ code: "timeout", result: { exitCode: 0 } });
  });

  test.runIf(onLinux)(
    "SIGKILL follows the grace time for processes that ignore SIGTERM, grandchildren included",
    async () => {
      const { world, advance } = createManualWorld();
      const output = watchOutput();
      const script = 'trap "" TERM; sh -c "echo ready; exec sleep 1000" & wait; sleep 1000';
      const running = await startProcess("sh", sh(script), { world, onOutput: output.onOutput });
      await output.seen("ready");
      const result = running.stop();
      advance(1999);
      expect(listMembers(running.group.id).length).toBeGreaterThanOrEqual(2);
      advance(1);
      expect(await result).toMatchObject({ ended: "stopped", signal: "SIGKILL", exitCode: 137, durationMs: 2000 });
      await waitUntil(() => listMembers(running.group.id).length === 0);
    },
  );

  test.runIf(onLinux)("the child of a stopped shell has the rest of the grace time to finish", async () => {
    const { world, advance } = createManualWorld();
    const output = watchOutput();
    const child = 'trap "echo got; read x < fifo; echo saved; exit" TERM; echo ready; while :; do sleep 0.01; done';
    const path = mkdtempSync(join(folder, "grace-"));
    await runProcess("mkfifo", ["fifo"], { cwd: path });
    const running = await startProcess("sh", sh(`sh -c '${child}' & wait`), {
      world,
      cwd: path,
      onOutput: output.onOutput,
    });
    await output.seen("ready");
    const result = running.stop();
    await output.seen("got");
    await waitUntil(() => !listMembers(running.group.id).includes(running.group.id));
    advance(1999);
    writeFileSync(join(path, "fifo"), "go\n");
    expect((await result).stdout).toBe("ready\ngot\nsaved\n");
  });

  test("an aborted command is an error with its output, and no later output is delivered", async () => {
    const controller = new AbortController();
    const output = watchOutput();
    const running = runProcess("sh", sh("echo 1; sleep 60; echo 2"), {
      signal: controller.signal,
      onOutput: (chunk) => {
        output.onOutput(chunk);
        controller.abort();
      },
    });
    expect(await getFailure(running)).toMatchObject({
      code: "cancelled",
      result: { ended: "cancelled", stdout: "1\n" },
    });
    expect(output.all()).toBe("1\n");
  });

  test("a command aborted before its start starts nothing", async () => {
    const file = join(folder, "started");
    const error = await getFailure(runProcess("touch", [file], { signal: AbortSignal.abort() }));
    expect(error).toMatchObject({ code: "cancelled", result: undefined });
    expect(readdirSync(folder)).not.toContain("started");
  });

  test.runIf(onLinux)("the end of a command ends background processes without a pipe", async () => {
    const running = await startProcess("sh", sh("sleep 1000 >/dev/null 2>&1 & echo done"), {
      world: createManualWorld().world,
    });
    expect(await running.result).toMatchObject({ exitCode: 0, ended: "exited", stdout: "done\n" });
    await waitUntil(() => listMembers(running.group.id).length === 0);
  });

  test.runIf(onLinux)(
    "the end of a command gives background processes that hold its output a moment, then ends them",
    async () => {
      const { world, advance } = createManualWorld();
      const running = await startProcess("sh", sh("sleep 1000 & echo done"), { world });
      await waitUntil(() => !listMembers(running.group.id).includes(running.group.id));
      let settled = false;
      running.result.then(() => {
        settled = true;
      });
      await waitUntil(() => listMembers(running.group.id).length === 1);
      expect(settled).toBe(false);
      await advanceUntilDone(running, () => advance(200));
      expect(await running.result).toMatchObject({ exitCode: 0, ended: "exited", stdout: "done\n" });
      await waitUntil(() => listMembers(running.group.id).length === 0);
    },
  );

  test.runIf(onLinux)(
    "the end of a command is reported even when a process that left its group holds the pipe",
    async () => {
      const { world, advance } = createManualWorld();
      const script = `const { spawn } = require("node:child_process");
      const child = spawn("sleep", ["1000"], { detached: true, stdio: "inherit" });
      console.log(child.pid); child.unref();`;
      const running = await startProcess(process.execPath, node(script), { world });
      await advanceUntilDone(running, () => advance(200));
      const result = await running.result;
      const escaped = Number(result.stdout);
      expect(isRunning(escaped)).toBe(true);
      process.kill(escaped, "SIGKILL");
      await waitUntil(() => !isRunning(escaped));
    },
  );

  test("a listener that throws fails its command and leaves nothing running", async () => {
    const running = await startProcess("sh", sh("echo x; sleep 1000"), {
      onOutput: () => {
        throw new Error("listener broke");
      },
    });
    expect(await getFailure(running.result)).toMatchObject({ message: "listener broke" });
    if (onLinux) await waitUntil(() => listMembers(running.group.id).length === 0);
  });
});

/** Advances the clock repeatedly until a process has returned its result. */
async function advanceUntilDone(running: RunningProcess, advance: () => void): Promise<void> {
  let done = false;
  running.result.finally(() => {
    done = true;
  });
  await waitUntil(() => {
    advance();
    return done;
  });
}

const strays: ChildProcess[] = [];
afterEach(() => {
  for (const stray of strays.splice(0)) stray.kill("SIGKILL");
});

/** Starts a separate parent process and collects its output. */
function startParent(...commands: string[]) {
  const parent = spawn(process.execPath, [fixture("parent.ts"), ...commands], { stdio: ["pipe", "pipe", "inherit"] });
  strays.push(parent);
  const output = watchOutput();
  parent.stdout.on("data", (chunk: Buffer) => output.onOutput(String(chunk)));
  const groups = () =>
    [...output.all().matchAll(/^group (\d+) (.*)$/gm)].map(([, id, born]) => ({ id: Number(id), born }));
  return { parent, output, groups, pid: parent.pid ?? 0 };
}

describe.runIf(onLinux)("parents killed by SIGKILL", () => {
  const longCommand = "sleep 1000 & echo ready-; wait";

  test("a parent killed by SIGKILL takes every process group with it, grandchildren and watcher included", async () => {
    const { parent, output, groups, pid } = startParent(
      `${longCommand}; echo a`,
      `trap "" TERM HUP; ${longCommand}; echo b`,
      "exit 0",
    );
    await waitUntil(() => output.all().split("ready-").length === 3 && groups().length === 3);
    const ids = groups().map((group) => group.id);
    // The third process has ended, so its number is free: only two groups of two are alive, beside the watcher.
    await waitUntil(() => listMembers(ids[2] ?? 0).length === 0);
    await waitUntil(() => ids.flatMap(listMembers).length === 4);
    const children = listChildren(pid);
    expect(children).toHaveLength(3);
    parent.kill("SIGKILL");
    await once(parent, "exit");
    await waitUntil(() => ids.flatMap(listMembers).length === 0);
    await waitUntil(() => !children.some(isRunning));
  });

  test("a parent killed by SIGKILL takes its groups with it even when its watcher was ended before", async () => {
    const { parent, output, groups, pid } = startParent(longCommand);
    await waitUntil(() => output.all().includes("ready-") && groups().length === 1);
    const [group] = groups();
    const watchers = () => listChildren(pid).filter((child) => child !== group?.id);
    const [first = 0] = watchers();
    process.kill(first, "SIGKILL");
    await waitUntil(() => watchers().some((watcher) => watcher !== first));
    // An answer proves that the new watcher has processed its message.
    parent.stdin.write("there?\n");
    await output.seen("heard there?");
    parent.kill("SIGKILL");
    await once(parent, "exit");
    await waitUntil(() => listMembers(group?.id ?? 0).length === 0);
  });

  test("the watcher ends living groups and none that only reuses a number", async () => {
    const strangers = [0, 1, 2].map(() => spawn("sleep", ["1000"], { detached: true, stdio: "ignore" }));
    strays.push(...strangers);
    const [live = 0, released = 0, reborn = 0] = strangers.map((stranger) => stranger.pid ?? 0);
    const getBirth = (pid: number) => getProcessGroup(pid).startId?.split("/")[1];
    const watcher = spawnWatcher();
    for (const pid of [live, released]) watcher?.stdin?.write(`+ ${pid} ${getBirth(pid)}\n`);
    watcher?.stdin?.write(`+ ${reborn} 1${getBirth(reborn)}\n- ${released} -\n- 99 -\n`);
    watcher?.stdin?.end();
    await once(strangers[0]!, "exit");
    if (watcher?.exitCode === null) await once(watcher, "exit");
    expect([live, released, reborn].map(isRunning)).toEqual([false, true, true]);
    for (const stranger of strangers) stranger.kill("SIGKILL");
  });

  test("a group with a reused number and another start time is not killed", async () => {
    const stranger = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" });
    strays.push(stranger);
    const id = stranger.pid ?? 0;
    const recorded = await startProcess("sleep", ["1000"]);
    // Simulates a reused pid of a collected leader.
    expect(signalGroup(id, "SIGKILL", "collected")).toBe(false);
    expect(killProcessGroup({ ...recorded.group, id, startId: `${recorded.group.startId}0` })).toBe("gone");
    expect(killProcessGroup({ id })).toBe("unknown");
    expect(killProcessGroup({ id: 1, startId: "x/1" })).toBe("unknown");
    expect(isRunning(id)).toBe(true);
    expect(killProcessGroup(recorded.group)).toBe("killed");
    expect(await recorded.result).toMatchObject({ signal: "SIGKILL", ended: "exited" });
    expect(killProcessGroup(recorded.group)).toBe("gone");
    stranger.kill("SIGKILL");
    await once(stranger, "exit");
  });

  test.runIf(onLinux)(
    "a group of another machine, or of another container, is unknown and not gone [FX21, PK18]",
    async () => {
      const recorded = await startProcess("true", []);
      await recorded.result;
      const { group } = recorded;
      const place = { machineId: "0".repeat(32), pidNamespace: "pid:[1]" };
      const otherBoot = "11111111-2222-3333-4444-555555555555/7";
      expect(killProcessGroup(group)).toBe("gone");
      expect(killProcessGroup({ ...group, ...place, startId: otherBoot })).toBe("unknown");
      expect(killProcessGroup({ id: group.id, startId: otherBoot })).toBe("unknown");
      expect(killProcessGroup({ ...group, pidNamespace: place.pidNamespace })).toBe("unknown");
      expect(group.pidNamespace).toMatch(/^pid:\[\d+\]$/);
    },
  );

  test.runIf(onLinux && hasMachineId)(
    "a group of an earlier boot of this machine is gone, and its journal shows a hash of the machine [FX21, PK18]",
    async () => {
      const { group, result } = await startProcess("true", []);
      await result;
      expect(killProcessGroup({ ...group, startId: "11111111-2222-3333-4444-555555555555/7" })).toBe("gone");
      expect(group.machineId).toMatch(/^[0-9a-f]{32}$/);
      expect(readFileSync("/etc/machine-id", "utf8")).not.toContain(group.machineId);
    },
  );

  test("a command has argv without a shell, an allowed environment, its own group, a deadline, and dies with its parent [R11]", async () => {
    process.env["STATEWRIGHT_TEST_SECRET"] = "hidden";
    const { world, advance } = createManualWorld();
    const output = watchOutput();
    const script = `console.log(JSON.stringify({ args: process.argv.slice(1), secret: process.env.STATEWRIGHT_TEST_SECRET }));
      console.log("end"); setInterval(() => {}, 1e6);`;
    const running = await startProcess(process.execPath, node(script, "$(id); x"), {
      timeoutMs: 60_000,
      world,
      onOutput: output.onOutput,
    });
    delete process.env["STATEWRIGHT_TEST_SECRET"];
    await output.seen("end");
    expect(JSON.parse(output.all().split("\n")[0] ?? "")).toEqual({ args: ["$(id); x"] });
    expect(listMembers(running.group.id)).toEqual([running.group.id]);
    advance(60_000);
    expect(await running.result).toMatchObject({ ended: "timeout" });

    const { parent, output: said, groups } = startParent(longCommand);
    await waitUntil(() => said.all().includes("ready-") && groups().length === 1);
    parent.kill("SIGKILL");
    await once(parent, "exit");
    await waitUntil(() => listMembers(groups()[0]?.id ?? 0).length === 0);
  });
});

test.runIf(posix)("a gated shell has the same argv, outputs, exit code and environment", async () => {
  const script = 'echo "$0 $# $1"; env | sed "s/=.*//" | sort | tr "\\n" " "; no_such_command; exit 7';
  const args = ["-c", script];
  for (const shell of ["sh", "bash"]) {
    const gated = await runProcess(shell, args, { env: { GIVEN: "1" } });
    const own = await runProcess(shell, args, { env: { GIVEN: "1" }, isShell: true });
    // A plain sh counts the line of the gate.
    const unnumbered = (text: string) => text.replace(/\d+: /, "");
    expect([own.exitCode, unnumbered(own.stderr)]).toEqual([gated.exitCode, unnumbered(gated.stderr)]);
    const names = (text: string) => text.replaceAll(/\b(?:OLDPWD|PWD|SHLVL|_)\b ?/g, "");
    expect(names(own.stdout)).toBe(names(gated.stdout));
  }
});
