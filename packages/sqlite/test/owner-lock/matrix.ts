/** Matrix of the owner lock: each action, in and outside of the owner's process, at each stage of a write. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { DriverName } from "@statewright/sqlite";
import { actions, hasSqliteCommand, outsideOnly, storeActions } from "./actions.ts";
import type { Check, Work } from "./requests.ts";

export const stages = ["idle", "before COMMIT", "after COMMIT", "once effect"] as const;

export interface Cell {
  readonly action: string;
  readonly place: "inside" | "outside";
  readonly stage: (typeof stages)[number];
  /** Driver of the owner. */
  readonly driver: DriverName;
  /** Folder of the store: on a disk or in memory. */
  readonly base: string;
}

export interface CellResult extends Cell {
  /** `ok`, or the error of the action. */
  readonly acted: string;
  readonly work: Work;
  /** Results of the owner's two writes from the action on. */
  readonly written: readonly string[];
  readonly checked: Check;
}

export function listBases(): readonly string[] {
  return existsSync("/dev/shm") ? [tmpdir(), "/dev/shm"] : [tmpdir()];
}

/** Lists the cells that this machine can run. */
export function listCells(bases: readonly string[] = listBases()): readonly Cell[] {
  const names = Object.keys(actions).filter((name) => name !== "sqlite3 command" || hasSqliteCommand());
  return bases.flatMap((base) =>
    stages.flatMap((stage) =>
      names.flatMap((action) =>
        (["inside", "outside"] as const)
          .filter((place) => place === "outside" || !outsideOnly.has(action))
          .flatMap((place) => listDrivers(action).map((driver) => ({ action, place, stage, driver, base }))),
      ),
    ),
  );
}

/** Stores beside an owner depend on its driver; other programs do not. */
function listDrivers(action: string): readonly DriverName[] {
  return action in storeActions ? ["better-sqlite3", "node:sqlite"] : ["better-sqlite3"];
}

/** Runs cells in an owner process; `flock` decides if the owner and the other process find the program `flock`. */
export function runCells(
  cells: readonly Cell[],
  flock: "present" | "absent" = "present",
): Promise<readonly CellResult[]> {
  const args = [fileURLToPath(new URL("owner.ts", import.meta.url)), JSON.stringify(cells), flock];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    output += text;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (code !== 0) reject(new Error(`the owner process ended with ${code ?? signal}: ${output.slice(-500)}`));
      else resolve(output.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)])));
    });
  });
}

/** Returns what was violated in a cell; empty for a safe cell. */
export function findViolations({ acted, work, written, checked }: CellResult): readonly string[] {
  const violations: string[] = [];
  if (acted !== "ok") violations.push(`the action failed: ${acted}`);
  const acknowledged = ["2", "3"].filter((_, index) => written[index] === "ok");
  for (const item of acknowledged)
    if (!checked.owned.includes(item)) violations.push(`the acknowledged write ${item} is lost`);
  if (work.own === "ok" && !checked.own.includes("rival"))
    violations.push("the acknowledged write of the other process is lost");
  if (work.owned === "ok" && acknowledged.length > 0) violations.push("two processes wrote to one thread");
  if (checked.opened === "ok" && checked.integrity !== "ok") violations.push(`damaged: ${checked.integrity}`);
  return violations;
}

/** Describes a cell in a few words. */
export function describeResult({ written, work }: CellResult): string {
  const owner = written.every((each) => each === "ok")
    ? "writes"
    : written.every((each) => each !== "ok")
      ? "refuses"
      : written[0] === "ok"
        ? "writes once, then refuses"
        : "refuses once, then writes";
  const rival = work.opened === "ok" ? (work.own === "ok" ? "writes" : work.own) : work.opened;
  return `owner ${owner}; other ${rival}`;
}
