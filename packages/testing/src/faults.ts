/** Faults on purpose: stores, tools, models, clocks and plugins that fail when a plan says so, and otherwise do their work. */
import type { Model, Store, Tool, World } from "@statewright/core";
import { type ClockFaults, faultyClock } from "./faults/faulty-clock.ts";
import { faultyModel, type ModelFaults } from "./faults/faulty-model.ts";
import { faultyPlugin, type PluginCommand, type PluginFaults } from "./faults/faulty-plugin.ts";
import { faultyStore, type StoreFaults } from "./faults/faulty-store.ts";
import { faultyTool, type ToolFaults } from "./faults/faulty-tool.ts";

/** Wrap a store, a tool, a model, a world or the command of a plugin so that it fails by plan. What does not fail is done by the original. */
export const faults: {
  readonly store: (store: Store, plan: StoreFaults) => Store;
  readonly tool: <Faulty extends Tool<never, never>>(tool: Faulty, plan: ToolFaults) => Faulty;
  readonly model: <Faulty extends Model>(model: Faulty, plan: ModelFaults) => Faulty;
  readonly clock: <Faulty extends World>(world: Faulty, plan: ClockFaults) => Faulty;
  readonly plugin: <Command extends PluginCommand>(plugin: Command, plan: PluginFaults) => Command;
} = { store: faultyStore, tool: faultyTool, model: faultyModel, clock: faultyClock, plugin: faultyPlugin };
