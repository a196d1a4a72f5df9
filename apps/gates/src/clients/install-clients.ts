/** Installs clients of other projects by exact version, outside of the workspace and without their install scripts. */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";

/** Clients of a gate. */
export interface ClientSet {
  /** Name of the folder. */
  readonly name: string;
  /** Exact versions by the name of the package. */
  readonly dependencies: Readonly<Record<string, string>>;
}

const timeoutMs = 300_000;

/** Returns the folder of the installed clients. The first call installs them; a later run of the gate finds them. */
export async function installClients({ name, dependencies }: ClientSet): Promise<string> {
  const manifest = JSON.stringify({ private: true, type: "module", dependencies }, null, 2);
  const hash = createHash("sha256").update(`${manifest}${process.version}`).digest("hex").slice(0, 12);
  const root = join(tmpdir(), "statewright-gate-clients");
  const folder = join(root, `${name}-${hash}`);
  if (existsSync(folder)) return folder;
  const partial = `${folder}.${process.pid}`;
  mkdirSync(partial, { recursive: true });
  writeFileSync(join(partial, "package.json"), manifest);
  const failure = await runNpmInstall(partial);
  if (failure !== undefined) {
    rmSync(partial, { recursive: true, force: true });
    throw new Error(`installClients ${name}: ${failure}`);
  }
  if (existsSync(folder)) rmSync(partial, { recursive: true, force: true });
  else renameSync(partial, folder);
  return folder;
}

/** Runs npm install. Returns the last lines of its output on failure. */
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
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    child.on("error", (error) => resolve(`npm could not be started: ${error.message}`));
    child.on("close", (code) => resolve(code === 0 ? undefined : output.trim().split("\n").slice(-5).join("\n")));
  });
}
