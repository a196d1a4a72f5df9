/** B17: packages, bytes and import time of an installation, for Statewright and its peers, each in its own folder. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Case, Contender } from "../case.ts";
import type { InstalledPeer } from "../peers/agents.ts";
import type { Peers } from "../peers/langgraph.ts";
import { countFolderBytes } from "../scratch-files.ts";
import { measureImport } from "./start-up.ts";

/** Empty without installed folders. */
export function createInstallationCases({ installed: folders }: Pick<Peers, "installed">): readonly Case[] {
  if (folders.length === 0) return [];
  return [
    {
      id: "B17",
      title: "installation: packages, bytes on disk, and import time",
      unit: "installation",
      budget: { cpuUs: 120_000, text: "8 third-party packages, 40 MB, 120 ms" },
      size: 1,
      contenders: folders.map(createContender),
    },
  ];
}

function createContender({ name, main, folder }: InstalledPeer): Contender {
  const modules = join(folder, "node_modules");
  return {
    name,
    role: main === "statewright" ? "ours" : "peer",
    ownProcesses: true,
    open: () => {
      const { own, others } = countPackages(readFileSync(join(modules, ".package-lock.json"), "utf8"), main);
      const bytes = countFolderBytes(modules);
      return {
        run: async () => measureImport(main, folder),
        getNotes: () => (own === 0 ? `${others} packages` : `${own} own packages and ${others} third-party packages`),
        close: () => bytes,
      };
    },
  };
}

/** Counts the packages of an npm lockfile: Statewright's own packages, and third-party packages. */
export function countPackages(lockfile: string, main: string): { readonly own: number; readonly others: number } {
  const { packages } = JSON.parse(lockfile) as { readonly packages: Readonly<Record<string, unknown>> };
  const names = Object.keys(packages).map((path) => path.split("node_modules/").at(-1) ?? "");
  const own = main === "statewright" ? names.filter((name) => /^(@statewright\/|statewright$)/.test(name)).length : 0;
  return { own, others: names.length - own };
}
