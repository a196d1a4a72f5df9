/** Every case, in the order in which it is measured and shown. */
import type { Case } from "../case.ts";
import type { Peers } from "../peers/langgraph.ts";
import { agentFile, agentTurnInMemory, agentTurnSaved } from "./agent-turn.ts";
import { bundleSize } from "./bundle.ts";
import { chainOfNodes } from "./chain.ts";
import { chat } from "./chat.ts";
import { compile } from "./compile.ts";
import { fanOut } from "./fan-out.ts";
import { firstRun } from "./first-run.ts";
import { hooks } from "./hooks.ts";
import { installed } from "./installed.ts";
import { pluginCall } from "./plugin-call.ts";
import { historyPage, listsOfMany, loadHead } from "./reading.ts";
import { readyTools } from "./ready-tools.ts";
import { startUp } from "./start-up.ts";
import { superstepBesideState } from "./state-size.ts";
import { runSaved, superstepInMemory, superstepSaved } from "./superstep.ts";
import { toolCall } from "./tool-call.ts";
import { toolTurn } from "./tool-turn.ts";
import { toolUpdates } from "./tool-updates.ts";
import { typeCheck } from "./type-check.ts";
import { waitingRun } from "./waiting-run.ts";

export function allCases(peers: Peers): readonly Case[] {
  return [
    superstepInMemory(peers),
    chainOfNodes(peers),
    superstepSaved("normal", peers),
    superstepSaved("full", peers),
    superstepBesideState(peers),
    runSaved(peers),
    chat("plain", peers),
    chat("tools", peers),
    toolTurn(peers),
    loadHead(peers),
    historyPage(peers),
    listsOfMany(),
    waitingRun(peers),
    fanOut("trivial", peers),
    fanOut("waiting", peers),
    toolCall(peers),
    toolUpdates(),
    ...pluginCall(),
    ...readyTools(),
    typeCheck(peers),
    hooks(),
    agentTurnInMemory(50, peers),
    agentTurnInMemory(400, peers),
    agentTurnSaved(50, peers),
    agentTurnSaved(400, peers),
    agentFile(peers),
    compile("chain", peers),
    compile("parallel", peers),
    firstRun(peers),
    ...startUp(peers),
    ...bundleSize(peers),
    ...installed(peers),
  ];
}
