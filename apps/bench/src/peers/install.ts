/**
 * Installs peers into their own folders, without their install scripts. Peers are no dependencies of this repository.
 * A peer that does not install is reported and left out.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Peer: exact versions, and a module that re-exports the parts used by the cases. */
export interface Peer {
  readonly name: string;
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
  /** Versions that the peer's own ranges resolve only with an install script, or not at all. */
  readonly overrides: Readonly<Record<string, string>>;
  readonly entry: string;
}

export type InstallResult =
  | { readonly kind: "installed"; readonly folder: string; readonly entry: string }
  | { readonly kind: "missing"; readonly reason: string };

const timeoutMs = 240_000;

/** Installs a peer once for all bench runs. `installer` returns the reason of a failure. */
export async function install(
  peer: Peer,
  installer: (folder: string) => Promise<string | undefined> = runNpmInstall,
): Promise<InstallResult> {
  const manifest = JSON.stringify(
    { private: true, type: "module", dependencies: peer.dependencies, overrides: peer.overrides },
    null,
    2,
  );
  const hash = createHash("sha256").update(`${manifest}${process.version}`).digest("hex").slice(0, 12);
  const folder = join(tmpdir(), "statewright-bench-peers", `${peer.name}-${hash}`);
  const markerFile = join(folder, "installed");
  const entry = join(folder, "entry.mjs");
  if (!existsSync(markerFile)) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), manifest);
    const failure = await installer(folder);
    if (failure !== undefined) {
      rmSync(folder, { recursive: true, force: true });
      return { kind: "missing", reason: failure };
    }
    writeFileSync(markerFile, "");
  }
  writeFileSync(entry, peer.entry);
  return { kind: "installed", folder, entry: pathToFileURL(entry).href };
}

/** Runs npm install. Returns the last error lines of npm on failure. */
function runNpmInstall(folder: string): Promise<string | undefined> {
  const flags = ["install", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund", "--loglevel=error"];
  return new Promise((resolve) => {
    const child = spawn("npm", flags, {
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
      shell: process.platform === "win32",
      timeout: timeoutMs,
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text) => {
        output += text;
      });
    child.on("error", (error) => resolve(`npm could not be started: ${error.message}`));
    child.on("close", (code) => {
      const lines = output
        .split("\n")
        .filter((line) => line.startsWith("npm error") && !line.includes("log of this run"));
      resolve(code === 0 ? undefined : `npm install failed (${code ?? "timeout"}): ${lines.slice(0, 3).join(" ")}`);
    });
  });
}
