// node scripts/build.mjs [--tests]: the extension into dist/, or the tests into out/.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import esbuild from "esbuild";

const shared = { bundle: true, platform: "node", target: "node20", format: "cjs", external: ["vscode"], logLevel: "warning" };

const entries = (folder) => readdirSync(folder).filter((name) => /\.(test|bench)\.ts$/.test(name)).map((name) => `${folder}/${name}`);

/** The licences of the packages whose files are in the bundle. */
function notices(files) {
  const folders = new Set(files.map((file) => /^.*node_modules\/(@[^/]+\/)?[^/]+/.exec(file)?.[0]).filter(Boolean));
  return [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
    const [text] = readdirSync(folder).filter((file) => /^licen[cs]e/i.test(file));
    if (!text) {
      throw new Error(`${folder} has no licence file`);
    }
    return `${name} ${version} (${license})\n\n${readFileSync(`${folder}/${text}`, "utf8").trim()}\n`;
  }).join(`\n${"-".repeat(80)}\n\n`);
}

if (process.argv.includes("--tests")) {
  rmSync("out", { recursive: true, force: true });
  for (const folder of ["test", "e2e"]) {
    await esbuild.build({
      ...shared,
      entryPoints: entries(folder),
      outdir: `out/${folder}`,
      packages: "external",
      sourcemap: "inline",
    });
  }
} else {
  const { metafile } = await esbuild.build({
    ...shared,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.js",
    minify: true,
    metafile: true,
  });
  writeFileSync("dist/THIRD-PARTY-NOTICES.txt", notices(Object.keys(metafile.inputs)));
}
