/** B17: what an installation comes to: packages, bytes and the import, ours beside others, each in a folder of its own. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Case, Contender } from "../case.ts";
import type { InstalledPeer } from "../peers/agents.ts";
import type { Peers } from "../peers/langgraph.ts";
import { bytesBelow } from "../scratch-files.ts";
import { importOnce } from "./start-up.ts";

/** None where nothing was installed. */
export function installed({ installed: folders }: Pick<Peers, "installed">): readonly Case[] {
  if (folders.length === 0) return [];
  return [
    {
      id: "B17",
      title: "installed: packages, bytes on disk, and the import",
      unit: "installation",
      budget: { cpuUs: 120_000, text: "8 packages of others, 40 MB, 120 ms" },
      size: 1,
      contenders: folders.map(contender),
    },
  ];
}

function contender({ name, main, folder }: InstalledPeer): Contender {
  const modules = join(folder, "node_modules");
  return {
    name,
    role: main === "statewright" ? "ours" : "peer",
    elsewhere: true,
    open: () => {
      const { own, others } = countPackages(readFileSync(join(modules, ".package-lock.json"), "utf8"), main);
      const bytes = bytesBelow(modules);
      return {
        run: async () => importOnce(main, folder),
        notes: () => (own === 0 ? `${others} packages` : `${own} packages and ${others} of others`),
        close: () => bytes,
      };
    },
  };
}

/** Packages in a lockfile of npm: those of our own name, and those of others. */
export function countPackages(lockfile: string, main: string): { readonly own: number; readonly others: number } {
  const { packages } = JSON.parse(lockfile) as { readonly packages: Readonly<Record<string, unknown>> };
  const names = Object.keys(packages).map((path) => path.split("node_modules/").at(-1) ?? "");
  const own = main === "statewright" ? names.filter((name) => /^(@statewright\/|statewright$)/.test(name)).length : 0;
  return { own, others: names.length - own };
}
