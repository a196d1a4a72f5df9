/** Servers of other frameworks, each with its own store. */
import { readFileSync } from "node:fs";
import { install, type Peer } from "./install.ts";

/** Installed server. */
export interface ServerPeer {
  readonly name: string;
  /** URL of the module that starts the server. */
  readonly entry: string;
}

/** Installed servers, and one sentence about each. */
export interface ServerPeers {
  readonly servers: readonly ServerPeer[];
  readonly notices: readonly string[];
}

export const noServers: ServerPeers = { servers: [], notices: [] };

interface PeerServer {
  readonly name: string;
  /** Package whose version is reported. */
  readonly main: string;
  /** File in `programs`. Its `start` starts the server. */
  readonly program: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

const peerServers: readonly PeerServer[] = [
  {
    name: "LangGraph dev server",
    main: "@langchain/langgraph-api",
    program: "langgraph-server.mjs",
    dependencies: {
      "@langchain/langgraph-api": "1.5.1",
      "@langchain/langgraph": "1.7.3",
      "@langchain/core": "1.4.0",
      zod: "4.6.7",
    },
  },
  {
    name: "Mastra server",
    main: "@mastra/hono",
    program: "mastra-server.mjs",
    dependencies: {
      "@mastra/core": "1.71.0",
      "@mastra/hono": "1.7.9",
      "@mastra/libsql": "1.23.1",
      "@mastra/memory": "1.31.0",
      "@hono/node-server": "2.1.8",
      hono: "4.13.19",
      zod: "4.6.7",
    },
  },
];

/** Installs the servers. A server that does not install is reported and left out. */
export async function loadServerPeers(installPeer: typeof install = install): Promise<ServerPeers> {
  const servers: ServerPeer[] = [];
  const notices: string[] = [];
  for (const server of peerServers) {
    const { name, main, dependencies } = server;
    const label = `${name} (${main} ${dependencies[main]})`;
    const found = await installPeer(toPeer(server));
    if (found.kind === "missing") notices.push(`${label} is missing: ${found.reason}.`);
    else {
      servers.push({ name, entry: found.entry });
      notices.push(`${label}.`);
    }
  }
  return { servers, notices };
}

function toPeer({ name, main, program, dependencies }: PeerServer): Peer {
  return {
    name: name.toLowerCase().replaceAll(" ", "-"),
    version: dependencies[main] ?? "",
    dependencies,
    overrides: {},
    entry: readFileSync(new URL(`./programs/${program}.txt`, import.meta.url), "utf8"),
  };
}
