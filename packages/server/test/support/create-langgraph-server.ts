/** Server with the LangGraph protocol over the graphs of the tests. */
import { engine, type Graph, type Store, type World } from "@statewright/core";
import { createServer, type Server } from "../../src/create-server.ts";
import { createServices } from "../../src/index.ts";
import { type LangGraphOptions, langgraph } from "../../src/langgraph.ts";

/** Token of the caller `local`. */
export const langGraphToken = "a-token-that-is-long-enough";

/** Parts of a server for tests. */
export interface LangGraphParts {
  readonly store: Store;
  readonly graphs: readonly Graph[];
  readonly world?: World;
  readonly options?: LangGraphOptions;
}

/** Creates a server and its engine, which has started. */
export function createLangGraphServer({ store, graphs, world, options }: LangGraphParts) {
  const host = engine({ store, graphs, ...(world === undefined ? {} : { world }) });
  const services = createServices({ engine: host });
  const server: Server = createServer({ engine: host, access: { token: langGraphToken } }, () => ({
    protocols: [langgraph(options)],
    forCaller: (caller, protocol) => services.forCaller(caller, protocol),
    getDocument: () => ({}),
  }));
  return { server, host, services };
}
