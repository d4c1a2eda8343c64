/** "Choose Model": the one that finds, and the one that puts what was found in order. */

import * as vscode from "vscode";

import { currentModel, setModel } from "./settings";

type Setting = "model" | "refineModel";
/** Either goes back to the setting's default, or lets the user point at a folder. */
type Choice = vscode.QuickPickItem & { setting: Setting; browse: boolean };

export async function chooseModel(): Promise<void> {
  const chosen = await vscode.window.showQuickPick(choices(), { title: "Meaning: Choose Model" });
  if (chosen) {
    const folder = chosen.browse ? await browse() : undefined;
    if (folder !== undefined || !chosen.browse) {
      await setModel(chosen.setting, folder);
    }
  }
}

function choices(): Choice[] {
  const model = currentModel("model");
  const refining = currentModel("refineModel");
  return [
    heading("Finds"),
    { label: "Default model", ...now(model === "default"), detail: "Comes with the server, small and fast.", setting: "model", browse: false },
    { label: "A model from disk…", detail: model === "default" ? "The folder of a bundle." : `Now: ${model}`, setting: "model", browse: true },
    heading("Puts what was found in order"),
    { label: "No second model", ...now(!refining), setting: "refineModel", browse: false },
    { label: "A second model from disk…", detail: refining ? `Now: ${refining}` : "Slower and better; its vectors are computed in the background.", setting: "refineModel", browse: true },
  ];
}

function now(isChosen: boolean): { description?: string } {
  return isChosen ? { description: "now" } : {};
}

function heading(label: string): Choice {
  return { label, kind: vscode.QuickPickItemKind.Separator, setting: "model", browse: false };
}

/** The folder of a bundle; undefined if the user chose none, or one that is not. */
async function browse(): Promise<string | undefined> {
  const [folder] = (await vscode.window.showOpenDialog({ canSelectFolders: true, canSelectFiles: false, openLabel: "Use This Model" })) ?? [];
  if (!folder) {
    return undefined;
  }
  try {
    await vscode.workspace.fs.stat(vscode.Uri.joinPath(folder, "bundle.json"));
    return folder.fsPath;
  } catch {
    void vscode.window.showErrorMessage(`${folder.fsPath} is no model: there is no bundle.json in it.`);
    return undefined;
  }
}
