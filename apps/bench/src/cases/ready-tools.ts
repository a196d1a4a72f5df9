/** B18 bash, read and search: overhead of the ready-made tools above the underlying program or system call. */
import { spawn, spawnSync } from "node:child_process";
import { readFile as readBytes } from "node:fs/promises";
import { join } from "node:path";
import { bash, readFile, search } from "@statewright/tools";
import type { JsonObject, Tool, ToolRuntime } from "statewright";
import type { Case, Work } from "../case.ts";
import { measureEach } from "../measure.ts";
import { createScratchFolder, type ScratchFolder } from "../scratch-files.ts";

const lineCount = 400;
const fileCount = 300;
const command = "echo hello";

/** Empty on Windows, which has another shell. Without ripgrep, the ripgrep contenders are left out. */
export function createReadyToolCases(): readonly Case[] {
  if (process.platform === "win32") return [];
  const ripgrep = spawnSync("rg", ["--version"]).status === 0;
  return [
    {
      id: "B18 bash",
      title: "command that prints one line, in its own process group, until its exit",
      unit: "command",
      budget: { cpuUs: 2_000, text: "1.2x of a bare spawn" },
      size: 40,
      contenders: [
        { name: "statewright", role: "ours", open: () => openToolCalls((root) => bash({ root }), { command }) },
        {
          name: "bare spawn of a process group",
          role: "limit",
          open: () => ({ run: (size) => measureEach(size, runBareSpawn) }),
        },
      ],
      checks: [{ subject: "statewright", baseline: "bare spawn of a process group", measure: "wall", max: 2 }],
    },
    {
      id: "B18 read",
      title: `file of ${lineCount} lines, read through the path confinement, with line numbers`,
      unit: "file",
      budget: { cpuUs: 500, text: "1.5x of a plain read" },
      size: 200,
      contenders: [
        {
          name: "statewright",
          role: "ours",
          open: () => openToolCalls((root) => readFile({ root }), { path: "file-0.txt" }),
        },
        { name: "Node's readFile, with lines split and numbered", role: "limit", open: openBareReads },
      ],
    },
    {
      id: "B18 search",
      title: `search through ${fileCount} files`,
      unit: "search",
      budget: { cpuUs: 30_000, text: "1.5x of ripgrep" },
      size: 10,
      contenders: [
        ...(ripgrep
          ? [
              {
                name: "statewright with ripgrep",
                role: "ours" as const,
                open: () => openToolCalls((root) => search({ root }), { pattern: "needle" }),
              },
              { name: "ripgrep", role: "limit" as const, open: openBareRipgrep },
            ]
          : []),
        {
          name: "statewright without ripgrep",
          role: "ours",
          open: () => openToolCalls((root) => search({ root, ripgrep: false }), { pattern: "needle" }),
        },
      ],
    },
  ];
}

/** Creates a folder of files of a few hundred lines; one file in ten has a matching line. */
function createFolderOfFiles(): ScratchFolder {
  const folder = createScratchFolder();
  for (let file = 0; file < fileCount; file++) {
    const lines = Array.from({ length: lineCount }, (_, nth) => `line ${nth} of file ${file}, some words of text`);
    if (file % 10 === 0) lines[200] = "here is the needle";
    folder.write(`file-${file}.txt`, `${lines.join("\n")}\n`);
  }
  return folder;
}

/** Calls the tool in the same way as a tool node, without a graph. */
function openToolCalls(createTool: (root: string) => Tool, args: JsonObject): Work {
  const folder = createFolderOfFiles();
  const tool = createTool(folder.path);
  const call = { id: "call", name: tool.spec.name, args };
  const runtime = { callId: "call", signal: new AbortController().signal } as ToolRuntime;
  return {
    run: (size) =>
      measureEach(size, async () => {
        await tool.call(undefined, runtime, call);
      }),
    close: () => removeFolder(folder),
  };
}

function runBareSpawn(): Promise<void> {
  return runProgram("bash", ["-c", command], ".");
}

function runProgram(program: string, args: readonly string[], cwd: string): Promise<void> {
  const child = spawn(program, args, { cwd, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.setEncoding("utf8").on("data", () => undefined);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => resolve());
  });
}

function openBareReads(): Work {
  const folder = createFolderOfFiles();
  return {
    run: (size) =>
      measureEach(size, async () => {
        const lines = (await readBytes(join(folder.path, "file-0.txt"), "utf8")).split("\n");
        lines.map((line, nth) => `${nth + 1}\t${line}`).join("\n");
      }),
    close: () => removeFolder(folder),
  };
}

function openBareRipgrep(): Work {
  const folder = createFolderOfFiles();
  return {
    run: (size) => measureEach(size, () => runProgram("rg", ["--json", "needle", "."], folder.path)),
    close: () => removeFolder(folder),
  };
}

function removeFolder(folder: ScratchFolder): undefined {
  folder.remove();
  return undefined;
}
