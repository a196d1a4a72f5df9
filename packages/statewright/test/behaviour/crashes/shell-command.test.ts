/** SIGKILL of a process whose agent runs a shell command. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { killAt } from "@statewright/testing";
import { afterAll, expect, test } from "vitest";

const script = new URL("../../support/processes/command-process.ts", import.meta.url);
const folder = mkdtempSync(join(tmpdir(), "statewright-commands-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Returns the pids of running processes with this text in their arguments. */
function running(text: string): readonly string[] {
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return false;
    try {
      const state = readFileSync(`/proc/${name}/stat`, "latin1").replace(/^.*\) /s, "")[0];
      return state !== "Z" && state !== "X" && readFileSync(`/proc/${name}/cmdline`, "latin1").includes(text);
    } catch {
      return false;
    }
  });
}

if (process.platform === "linux")
  test("a kill during a shell command kills its process group, prevents its later effects, and leaves the call in doubt [C23]", async () => {
    const seconds = `7${process.pid}.5`;
    const { processes, stdout } = await killAt({ script, folder, args: [seconds], point: "command at work" });
    expect(processes[0]?.points).toEqual(["command at work"]);
    expect(JSON.parse(stdout)).toEqual({ status: "waiting", questions: ["in_doubt"] });
    while (running(seconds).length > 0) await new Promise((next) => setImmediate(next));
    expect(existsSync(join(folder, "late.txt"))).toBe(false);
  });
