/** B21: what the ready-made tools add to the program or the call that they are made of. */
import { spawn, spawnSync } from "node:child_process";
import { readFile as readBytes } from "node:fs/promises";
import { join } from "node:path";
import { bash, readFile, search } from "@statewright/tools";
import type { JsonObject, Tool, ToolRuntime } from "statewright";
import type { Case, Work } from "../case.ts";
import { eachTimed } from "../measure.ts";
import { type ScratchFolder, scratchFolder } from "../scratch-files.ts";

const lineCount = 400;
const fileCount = 300;
const command = "echo hello";

/** Nothing on Windows, whose shell is another; no search beside ripgrep where it is absent. */
export function readyTools(): readonly Case[] {
  if (process.platform === "win32") return [];
  const ripgrep = spawnSync("rg", ["--version"]).status === 0;
  return [
    {
      id: "B21 bash",
      title: "a command that prints a line, in a group of its own, to its end",
      unit: "command",
      budget: { cpuUs: 2_000, text: "1.2x of a bare spawn" },
      size: 40,
      contenders: [
        { name: "statewright", role: "ours", open: () => calling((root) => bash({ root }), { command }) },
        { name: "a bare spawn of a group", role: "limit", open: () => ({ run: (size) => eachTimed(size, bareSpawn) }) },
      ],
      checks: [{ of: "statewright", to: "a bare spawn of a group", measure: "wall", atMost: 2 }],
    },
    {
      id: "B21 read",
      title: `a file of ${lineCount} lines, read through the confinement, with the numbers of its lines`,
      unit: "file",
      budget: { cpuUs: 500, text: "1.5x of reading it" },
      size: 200,
      contenders: [
        {
          name: "statewright",
          role: "ours",
          open: () => calling((root) => readFile({ root }), { path: "file-0.txt" }),
        },
        { name: "readFile of Node, lines split and numbered", role: "limit", open: bareReading },
      ],
    },
    {
      id: "B21 search",
      title: `a search through ${fileCount} files`,
      unit: "search",
      budget: { cpuUs: 30_000, text: "1.5x of ripgrep" },
      size: 10,
      contenders: [
        ...(ripgrep
          ? [
              {
                name: "statewright by ripgrep",
                role: "ours" as const,
                open: () => calling((root) => search({ root }), { pattern: "needle" }),
              },
              { name: "ripgrep", role: "limit" as const, open: bareRipgrep },
            ]
          : []),
        {
          name: "statewright by itself",
          role: "ours",
          open: () => calling((root) => search({ root, ripgrep: false }), { pattern: "needle" }),
        },
      ],
    },
  ];
}

/** A folder of files of a few hundred lines, in one of ten a line to be found. */
function folderOfFiles(): ScratchFolder {
  const folder = scratchFolder();
  for (let file = 0; file < fileCount; file++) {
    const lines = Array.from({ length: lineCount }, (_, nth) => `line ${nth} of file ${file}, some words of text`);
    if (file % 10 === 0) lines[200] = "here is the needle";
    folder.write(`file-${file}.txt`, `${lines.join("\n")}\n`);
  }
  return folder;
}

/** What a tool node does with a call, without the tool node. */
function calling(make: (root: string) => Tool, args: JsonObject): Work {
  const folder = folderOfFiles();
  const tool = make(folder.path);
  const call = { id: "call", name: tool.spec.name, args };
  const runtime = { callId: "call", signal: new AbortController().signal } as ToolRuntime;
  return {
    run: (size) =>
      eachTimed(size, async () => {
        await tool.call(undefined, runtime, call);
      }),
    close: () => closed(folder),
  };
}

function bareSpawn(): Promise<void> {
  return ended("bash", ["-c", command], ".");
}

function ended(program: string, args: readonly string[], cwd: string): Promise<void> {
  const child = spawn(program, args, { cwd, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.setEncoding("utf8").on("data", () => undefined);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => resolve());
  });
}

function bareReading(): Work {
  const folder = folderOfFiles();
  return {
    run: (size) =>
      eachTimed(size, async () => {
        const lines = (await readBytes(join(folder.path, "file-0.txt"), "utf8")).split("\n");
        lines.map((line, nth) => `${nth + 1}\t${line}`).join("\n");
      }),
    close: () => closed(folder),
  };
}

function bareRipgrep(): Work {
  const folder = folderOfFiles();
  return {
    run: (size) => eachTimed(size, () => ended("rg", ["--json", "needle", "."], folder.path)),
    close: () => closed(folder),
  };
}

function closed(folder: ScratchFolder): undefined {
  folder.remove();
  return undefined;
}
