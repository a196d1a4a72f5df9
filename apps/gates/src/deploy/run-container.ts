/** Container without Docker: another user, the environment of the image alone, and a read-only file system. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { Image } from "./build-image.ts";

/** Program in a container. */
export interface Container {
  readonly child: ChildProcess;
  /** Exit code; null after a signal. */
  readonly ended: Promise<number | null>;
  /** Output so far, errors included. */
  readonly getOutput: () => string;
  /** Resolves to the first whole line of the output with the text. Rejects if the program ends before. */
  readonly waitForLine: (text: string) => Promise<string>;
}

/** Program of a container, and variables beside those of the image. */
export interface ContainerOptions {
  readonly command?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Starts a program of the image. Root runs it as the user of the image, in a mount namespace whose file system is
 * read-only except for the volume and a temporary folder. Without root or namespaces, the modes of the files protect
 * the code.
 */
export function startContainer(image: Image, { command = image.command, env = {} }: ContainerOptions = {}): Container {
  const { volumeFolder, workFolder, user } = image;
  const temporary = join(volumeFolder, "..", "tmp");
  mkdirSync(temporary, { recursive: true, mode: 0o777 });
  const [program = "", ...args] = canIsolate()
    ? [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        isolation,
        "sh",
        volumeFolder,
        temporary,
        String(user.uid),
        String(user.gid),
        ...command,
      ]
    : command;
  const isRoot = process.getuid?.() === 0 && !canIsolate();
  const child = spawn(program, args, {
    cwd: workFolder,
    env: { ...image.env, TMPDIR: temporary, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    ...(isRoot ? user : {}),
  });
  return watch(child);
}

/** Binds the volume and a fresh temporary folder, makes the rest read-only, and drops all rights. */
const isolation = [
  "set -e",
  'mount --bind "$1" "$1"',
  'mount -t tmpfs -o mode=1777 tmpfs "$2"',
  "mount -o remount,bind,ro /",
  "user=$3 group=$4",
  "shift 4",
  'exec setpriv --reuid "$user" --regid "$group" --clear-groups --no-new-privs --bounding-set=-all "$@"',
].join("\n");

/** True for root on a machine with mount namespaces. */
function canIsolate(): boolean {
  return process.getuid?.() === 0 && spawnSync("unshare", ["--mount", "true"]).status === 0;
}

function watch(child: ChildProcess): Container {
  let output = "";
  const listeners = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      for (const listener of listeners) listener();
    });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  return {
    child,
    ended,
    getOutput: () => output,
    waitForLine: (text) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const line = output
            .split("\n")
            .slice(0, -1)
            .find((each) => each.includes(text));
          if (line !== undefined) resolve(line);
        };
        listeners.add(look);
        look();
        ended.then((code) => reject(new Error(`expected "${text}", got exit code ${code}:\n${output}`)), reject);
      }),
  };
}
