/** The protocol of LangGraph servers, for its unmodified clients. */
import { checkFlag, checkOptions, invalidOption, listOptionNames } from "@statewright/core/adapter";
import type { Protocol } from "../http/route.ts";
import { formatLangGraphProblem } from "./create-problem.ts";
import type { LangGraphOptions, LangGraphSettings } from "./options.ts";
import { assistantRoutes } from "./routes/assistant-routes.ts";
import { refusedRoutes } from "./routes/refused-routes.ts";
import { createRunRoutes } from "./routes/run-routes.ts";
import { createStateRoutes } from "./routes/state-routes.ts";
import { createStatelessRoutes } from "./routes/stateless-routes.ts";
import { createStoreRoutes } from "./routes/store-routes.ts";
import { createThreadRoutes } from "./routes/thread-routes.ts";
import { createV2Routes } from "./v2/v2-routes.ts";

const optionNames = listOptionNames<LangGraphOptions>({ prefix: true, hitl: true, longTerm: true });

/**
 * Creates the protocol of LangGraph servers: `Client` of `@langchain/langgraph-sdk`, `useStream` and Agent Chat UI talk
 * to the server without changes. Throws `invalid_option`.
 *
 * @example
 * ```ts
 * const server = serve({ engine: host, access: { token }, protocols: [langgraph()] });
 * const { url } = await server.listen({ port: 4270 });
 * const client = new Client({ apiUrl: `${url}/langgraph`, apiKey: token });
 * ```
 */
export function langgraph(options: LangGraphOptions = {}): Protocol {
  checkOptions("langgraph", options, optionNames);
  const { prefix = "/langgraph", hitl = true, longTerm } = options;
  checkFlag("langgraph", { hitl });
  if (!/^(\/[A-Za-z0-9_-]+)*$/.test(prefix))
    throw invalidOption({ where: "langgraph", option: "prefix", expected: "a path such as /langgraph", got: prefix });
  const settings: LangGraphSettings = { hitl, longTerm };
  return {
    name: "langgraph",
    prefix,
    routes: [
      ...assistantRoutes,
      ...createThreadRoutes(settings),
      ...createStateRoutes(settings),
      ...createRunRoutes(settings),
      ...createStatelessRoutes(settings),
      ...createStoreRoutes(longTerm),
      ...createV2Routes(settings),
      ...refusedRoutes,
    ],
    formatProblem: formatLangGraphProblem,
  };
}
