/**
 * Peers are installed by the bench into a folder of their own, without their install scripts: they are no dependency of
 * anything in this repository. One that does not install is reported and left out.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** A peer: exact versions, and the module that hands on what the cases use of it. */
export interface Peer {
  readonly name: string;
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
  /** Versions that its own ranges do not find without an install script, or not at all. */
  readonly overrides: Readonly<Record<string, string>>;
  readonly entry: string;
}

export type Installed =
  | { readonly kind: "installed"; readonly folder: string; readonly entry: string }
  | { readonly kind: "missing"; readonly why: string };

const patienceMs = 240_000;

/** Install a peer, once for all runs of the bench. `installer` gives the reason where it fails. */
export async function install(
  peer: Peer,
  installer: (folder: string) => Promise<string | undefined> = npmInstall,
): Promise<Installed> {
  const manifest = JSON.stringify(
    { private: true, type: "module", dependencies: peer.dependencies, overrides: peer.overrides },
    null,
    2,
  );
  const mark = createHash("sha256").update(`${manifest}${process.version}`).digest("hex").slice(0, 12);
  const folder = join(tmpdir(), "statewright-bench-peers", `${peer.name}-${mark}`);
  const done = join(folder, "installed");
  const entry = join(folder, "entry.mjs");
  if (!existsSync(done)) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), manifest);
    const failure = await installer(folder);
    if (failure !== undefined) {
      rmSync(folder, { recursive: true, force: true });
      return { kind: "missing", why: failure };
    }
    writeFileSync(done, "");
  }
  writeFileSync(entry, peer.entry);
  return { kind: "installed", folder, entry: pathToFileURL(entry).href };
}

/** The last lines of what npm said, when it failed. */
function npmInstall(folder: string): Promise<string | undefined> {
  const flags = ["install", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund", "--loglevel=error"];
  return new Promise((resolve) => {
    const child = spawn("npm", flags, {
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
      shell: process.platform === "win32",
      timeout: patienceMs,
    });
    let said = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text) => {
        said += text;
      });
    child.on("error", (error) => resolve(`npm could not be started: ${error.message}`));
    child.on("close", (code) => {
      const lines = said
        .split("\n")
        .filter((line) => line.startsWith("npm error") && !line.includes("log of this run"));
      resolve(code === 0 ? undefined : `npm install failed (${code ?? "too slow"}): ${lines.slice(0, 3).join(" ")}`);
    });
  });
}
